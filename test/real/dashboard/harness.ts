import { LiveError, viewAddress } from 'rivulet/live'
import type { LiveState, LiveStatus, LiveView, ViewSnapshot } from 'rivulet/live'
import type { AddRunsRequest, AddRunsResponse, SearchResponse } from 'rivulet'
import { LogStatus } from '../../../src/dashboard/page/log-status.ts'
import { mount } from '../../../src/dashboard/page/mount.tsx'
import { emptyFixture, fullFixture, hostileFixture, turnedFixture } from './rows.ts'
import type { Fixture } from './rows.ts'

/**
 * The page over rows of this file instead of a gateway's, so that a test can bring it into each state: `?rows=full` (or `empty`,
 * `hostile`, `turned`, `many`, `none` for rows that never come) and `&state=stale`, `&without-service`, and `harness.setState('denied')` later.
 */
class FakeView implements LiveView<unknown> {
  readonly address: string
  readonly #listeners = new Set<(snapshot: ViewSnapshot<unknown>) => void>()
  #snapshot: ViewSnapshot<unknown>

  constructor(address: string, rows: ReadonlyMap<string, unknown> | undefined, status: LiveStatus) {
    this.address = address
    this.#snapshot = { rows: rows ?? new Map(), ready: rows !== undefined, status, gaps: 0 }
  }

  subscribe(listener: (snapshot: ViewSnapshot<unknown>) => void): () => void {
    this.#listeners.add(listener)
    listener(this.#snapshot)
    return () => this.#listeners.delete(listener)
  }

  getSnapshot = () => this.#snapshot
  getServerSnapshot = () => this.#snapshot
  status = () => this.#snapshot.status

  change(change: Partial<ViewSnapshot<unknown>>): void {
    this.#snapshot = { ...this.#snapshot, ...change }
    for (const listener of this.#listeners) listener(this.#snapshot)
  }
}

const query = new URLSearchParams(location.search)
const wanted = query.get('rows') ?? 'full'
const now = Date.now()
const fixture = fixtureOf(wanted)
let status = statusOf(query.get('state') ?? (wanted === 'none' ? 'connecting' : 'live'))
let isRefused = query.has('refused')
const views = new Map<string, FakeView>()
const listeners = new Set<(status: LiveStatus) => void>()
const accessListeners = new Set<() => void>()

function fixtureOf(name: string): Fixture {
  if (name === 'empty') return emptyFixture(now)
  if (name === 'hostile') return hostileFixture(now)
  if (name === 'turned') return turnedFixture(now)
  return name === 'many' ? fullFixture(now, 10_000, 5_000) : fullFixture(now)
}

function statusOf(state: string): LiveStatus {
  const error =
    state === 'denied' ? new Error('the grant does not name this view') : new Error('network error')
  const since = now - 95_000
  return state === 'live' || state === 'connecting'
    ? { state, since }
    : { state: state as LiveState, since, error }
}

function viewOf(name: string, params?: Readonly<Record<string, string>>): FakeView {
  const address = viewAddress(name, params)
  const known = views.get(address)
  if (known !== undefined) return known
  const rows = wanted === 'none' ? undefined : (fixture.views[address] ?? new Map())
  const view = new FakeView(address, rows, status)
  views.set(address, view)
  return view
}

async function search(request: { readonly search_queries: readonly string[] }): Promise<SearchResponse> {
  const [text = ''] = request.search_queries
  if (text === 'fail') throw new Error('the service answered 503')
  if (text === 'never') return new Promise(() => {})
  if (text === 'nothing') return { results: [] }
  return {
    results: Object.entries(fixture.documents).map(([url, { title, text: body }]) => ({
      url,
      title,
      publish_date: '2026-03-04',
      excerpts: body.split('\n\n').slice(0, 4),
    })),
    warnings: text === 'warn' ? [{ type: 'warning', message: 'The mode was changed to fast.' }] : null,
  }
}

let addedRuns = 0

async function addRuns(_group: string, { inputs }: AddRunsRequest): Promise<AddRunsResponse> {
  const asked = inputs[0]?.input
  if (asked === 'never') return new Promise(() => {})
  if (asked === 'fail') throw new LiveError('too_many', 'at most 1000 runs a minute', { retryAfter: 41_000 })
  if (asked === 'cut') {
    throw new LiveError('uncertain', 'the request failed, and the service may have acted on it')
  }
  const added = {
    num_task_runs: inputs.length,
    task_run_status_counts: { queued: inputs.length },
    is_active: true,
    status_message: null,
    modified_at: null,
  }
  const run_ids = inputs.map(() => `trun_added_${++addedRuns}`)
  return { status: added, run_ids, run_cursor: null, event_cursor: null }
}

Object.assign(globalThis, {
  harness: {
    setState(state: string) {
      status = statusOf(state)
      for (const view of views.values()) view.change({ status })
      for (const listener of listeners) listener(status)
    },
    setRow(address: string, key: string, row: unknown) {
      const view = views.get(address)
      view?.change({ rows: new Map([...view.getSnapshot().rows, [key, row]]) })
    },
    refuse() {
      isRefused = true
      for (const listener of accessListeners) listener()
    },
  },
})

const root = document.querySelector('#root')
if (root === null) throw new Error('there is no #root')
mount(root, {
  live: {
    view: viewOf as never,
    status: {
      subscribe(listener: (status: LiveStatus) => void) {
        listeners.add(listener)
        listener(status)
        return () => listeners.delete(listener)
      },
      getSnapshot: () => status,
    } as never,
    inspect: {
      subscribe: () => () => {},
      getSnapshot: () => ({ role: 'idle', followers: 0, views: [] }),
    } as never,
    search,
    addRuns,
    close() {},
    [Symbol.dispose]() {},
  },
  fetchDocument: async (url) => {
    if (url.includes('register')) throw new Error('the connection was reset')
    return fixture.documents[url]
  },
  logStatus: new LogStatus(() =>
    wanted === 'none'
      ? new Promise(() => {})
      : Promise.resolve({
          ...fixture.status,
          now: Date.now(),
          ...(query.has('without-service') && { can: { search: false, addRuns: false, documents: false } }),
        }),
  ),
  access: {
    subscribe(listener: () => void) {
      accessListeners.add(listener)
      return () => accessListeners.delete(listener)
    },
    isRefused: () => isRefused,
  },
})
