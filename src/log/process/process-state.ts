import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkInteger, checkOptions, checkText } from '../../protocol/check.ts'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import type { Position } from '../store/contract.ts'
import type { StoredStates } from '../store/process-store.ts'
import { LogClosedError, LogPositionError, SnapshotTooLargeError } from '../errors.ts'

/** Maximum number of changes that are read at once. */
const PAGE = 500

/** The length of the states in a snapshot, as JSON, in characters. */
const MAX_SNAPSHOT_LENGTH = 64 * 1024 * 1024

/** How often a snapshot is begun again that was overtaken. */
const SNAPSHOT_ATTEMPTS = 5

/** The state of a key after a change. */
export interface ProcessChange<State> {
  readonly key: string
  /** Null for a key that was removed. */
  readonly state: State | null
  /** The position of the process after this change. */
  readonly position: Position
}

/** The whole state of a process at one moment. */
export interface ProcessSnapshot<State> {
  /** States by key. */
  readonly state: ReadonlyMap<string, State>
  /** The position of the process, for `changes`. It is no position of an entry. */
  readonly position: Position
}

/** Which states {@link ProcessState.page} reads. */
export interface StatePageOptions {
  /** Only keys that begin with this text. Default: all. */
  readonly prefix?: string
  /** Only keys after this one, the last of the page before. Default: from the first one on. */
  readonly after?: string
  /** The position of the first page: a state that was built again since is refused. Default: the state as it is. */
  readonly since?: Position
  /** Maximum number of states, from 1 to 10,000. Default 100. A page of more than 1 MiB has fewer. */
  readonly limit?: number
}

/** States by key, in the order of their keys. */
export interface StatePage<State> {
  readonly states: ReadonlyMap<string, State>
  /** The position of the process when the page was read. */
  readonly position: Position
  /** Whether no key follows. */
  readonly isEnd: boolean
}

/** The state of a process, as of its last commit. It can be read in any process of the operating system that opens the log. */
export interface ProcessState<State> {
  /** The state of a key; undefined if it has none. */
  get(key: string): Promise<State | undefined>
  /**
   * All states, and the position from which {@link changes} go on. Rejects with a `SnapshotTooLargeError` for more keys than
   * the limit, or more than 64 MiB; `changes(undefined, { live: false })` reads those one by one.
   */
  snapshot(options?: {
    /** Maximum number of keys. Default 100,000. */
    readonly limit?: number
  }): Promise<ProcessSnapshot<State>>
  /**
   * Reads states in the order of their keys, such as those whose keys begin with the same text, page by page. Pages are of
   * different moments: what has changed between them is among the {@link changes} after the position of the first one.
   *
   * Rejects with a `LogPositionError` if the state was built again after `since`.
   */
  page(options?: StatePageOptions): Promise<StatePage<State>>
  /**
   * The changes after a position, or of all keys without one. Each change has its own position, from which reading goes on. A
   * reader that is behind gets only the last state of each key.
   *
   * Errors with a `LogPositionError` for a position of another log or of an earlier build of the state. Also for one that is so
   * old that removed keys were forgotten since, 10,000 of them at least: take a new snapshot. Completes when the log is closed.
   */
  changes(
    after?: Position,
    options?: {
      /** Whether to wait for more at the end. Default true. */
      readonly live?: boolean
    },
  ): Observable<ProcessChange<State>>
}

/** Reads the state of a process from its log. */
export class StoredProcessState<State> implements ProcessState<State> {
  readonly #states: StoredStates
  readonly #name: string

  constructor(states: StoredStates, name: string) {
    checkText('name', name)
    this.#states = states
    this.#name = `process:${name}`
  }

  async get(key: string): Promise<State | undefined> {
    if (typeof key !== 'string') throw new ArgumentError('key', 'a key', key)
    const [state] = await this.#states.states(this.#name, [key])
    return typeof state === 'string' ? parsed<State>(state) : undefined
  }

  async snapshot(options: { readonly limit?: number } = {}): Promise<ProcessSnapshot<State>> {
    checkOptions('options', options, ['limit'])
    const { limit = 100_000 } = options
    checkInteger('limit', limit, 1)
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#snapshot(limit)
      } catch (error) {
        // The process was built again meanwhile, or removed very many keys.
        if (!(error instanceof LogPositionError) || attempt === SNAPSHOT_ATTEMPTS) throw error
      }
    }
  }

  async page(options: StatePageOptions = {}): Promise<StatePage<State>> {
    checkOptions('options', options, ['prefix', 'after', 'since', 'limit'])
    const { prefix = '', after, since, limit = 100 } = options
    if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
      throw new ArgumentError('prefix', 'a well-formed text', prefix)
    }
    if (after !== undefined && typeof after !== 'string') throw new ArgumentError('after', 'a key', after)
    if (since !== undefined) checkText('since', since)
    checkInteger('limit', limit, 1, 10_000)
    const page = await this.#states.range(this.#name, { prefix, after, since, limit })
    return { ...page, states: new Map(page.states.map(({ key, state }) => [key, parsed<State>(state)])) }
  }

  changes(after?: Position, options: { readonly live?: boolean } = {}): Observable<ProcessChange<State>> {
    if (after !== undefined) checkText('after', after)
    checkOptions('options', options, ['live'])
    const { live = true } = options
    checkBoolean('live', live)
    return new Observable((subscriber) => {
      const stop = new AbortController()
      subscriber.add(() => stop.abort())
      this.#emit(after, live, subscriber, stop.signal).catch((error: unknown) => {
        if (error instanceof LogClosedError) subscriber.complete()
        else subscriber.error(error)
      })
    })
  }

  /**
   * Reads the last change of each key to the end. What changes meanwhile comes again after that. So it is the state at the
   * moment of the last page.
   */
  async #snapshot(limit: number): Promise<ProcessSnapshot<State>> {
    const processes = this.#states
    const json = new Map<string, string>()
    let length = 0
    let position = await processes.start()
    for (;;) {
      const page = await processes.changes(this.#name, position, { limit: PAGE })
      position = page.position
      for (const { key, state } of page.changes) {
        length += (state?.length ?? 0) - (json.get(key)?.length ?? 0)
        if (state === null) json.delete(key)
        else json.set(key, state)
      }
      if (json.size > limit || length > MAX_SNAPSHOT_LENGTH)
        throw new SnapshotTooLargeError(this.#name, limit)
      if (page.isEnd) break
    }
    const state = new Map(Array.from(json, ([key, text]) => [key, parsed<State>(text)]))
    return { state, position }
  }

  async #emit(
    after: Position | undefined,
    live: boolean,
    subscriber: Subscriber<ProcessChange<State>>,
    stop: AbortSignal,
  ): Promise<void> {
    const processes = this.#states
    const gate = gateOf(subscriber)
    let position = after ?? (await processes.start())
    while (!stop.aborted) {
      const page = await processes.changes(this.#name, position, { limit: PAGE })
      for (const change of page.changes) {
        await opened(gate, stop)
        if (stop.aborted) return
        const { key, state } = change
        const value = state === null ? null : parsed<State>(state)
        subscriber.next({ key, state: value, position: change.position })
      }
      position = page.position
      if (!page.isEnd) continue
      if (!live) return subscriber.complete()
      await processes.wait(this.#name, position, stop).catch((error: unknown) => {
        if (!stop.aborted) throw error
      })
    }
  }
}

/** Waits until the gate is open, or the signal aborted. */
async function opened(gate: Gate | undefined, stop: AbortSignal): Promise<void> {
  for (;;) {
    if (gate?.closed !== true || stop.aborted) return
    await new Promise<void>((resolve) => {
      const end = () => {
        unlisten()
        stop.removeEventListener('abort', end)
        resolve()
      }
      const unlisten = gate.onChange(end)
      stop.addEventListener('abort', end)
    })
  }
}

/** A state as the process has set it. The process of this name says what it is. */
function parsed<State>(json: string): State {
  return JSON.parse(json)
}
