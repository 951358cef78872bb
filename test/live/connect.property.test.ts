import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { RowState } from '../../src/protocol/live.ts'
import { connectIn } from '../../src/live/connect.ts'
import { TestPage } from './environment.ts'
import { rowsOf, soon } from './pages.ts'
import type { Shapes } from './pages.ts'
import { frameText, streamServer } from './stream-server.ts'

/** How a server treats one connection. */
interface Behaviour {
  /** Whether it forgets the client's position, and sends a snapshot. */
  readonly forgets: boolean
  /** How many rows are in a part of a snapshot, and changes in a frame. */
  readonly part: number
  /** How many changes before the client's position it sends again. */
  readonly again: number
  /** How many changes of the log it sends. */
  readonly changes: number
  /** The bytes after which it cuts the connection. */
  readonly bytes: number
  /** The sizes in which the bytes are written. */
  readonly chunk: number
}

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  forgets: fc.boolean(),
  part: fc.integer({ min: 1, max: 4 }),
  again: fc.nat(3),
  changes: fc.nat(30),
  bytes: fc.nat(2_500),
  chunk: fc.integer({ min: 1, max: 400 }),
})

/** A log of changes of a few rows: null removes one. */
const log = fc.array(
  fc.tuple(fc.constantFrom('a', 'b', 'c', 'ä/é', 'e'), fc.option(fc.record({ n: fc.nat(5) }))),
  { minLength: 1, maxLength: 30 },
)

type Change = readonly [key: string, row: { readonly n: number } | null]

function rowsAt(changes: readonly Change[], position: number): Map<string, { readonly n: number }> {
  const rows = new Map<string, { readonly n: number }>()
  for (const [key, row] of changes.slice(0, position)) {
    if (row === null) rows.delete(key)
    else rows.set(key, row)
  }
  return rows
}

function inParts<Value>(values: readonly Value[], size: number): Value[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) =>
    values.slice(index * size, (index + 1) * size),
  )
}

/** All that a server sends to a client with this position. */
function textFor(
  changes: readonly Change[],
  after: number | undefined,
  how: Behaviour,
  isLast: boolean,
): string {
  const end = isLast ? changes.length : Math.min(changes.length, Math.max(after ?? 0, how.changes))
  let text = frameText('open', { protocol: 1, expires: 0, heartbeat: 15_000, now: 0 })
  let position = after
  if (position === undefined || how.forgets) {
    if (position !== undefined) text += frameText('gap', { view: 'groups', reason: 'retention' })
    // Rows of later parts may be newer than the position, as where they are read page by page.
    const begin = Math.min(end, how.again)
    const parts = inParts<RowState>([...rowsAt(changes, end)], how.part)
    if (parts.length === 0) parts.push([])
    for (const [index, rows] of parts.entries()) {
      const isEnd = index === parts.length - 1
      text += frameText('snapshot', {
        view: 'groups',
        rows,
        first: index === 0,
        ...(isEnd && { position: String(begin) }),
      })
    }
    position = begin
  } else position = Math.max(0, position - how.again)
  for (const rows of inParts(changes.slice(position, end), how.part)) {
    position += rows.length
    text += frameText('changes', { view: 'groups', rows, position: String(position) })
  }
  return text + frameText('current', { view: 'groups' })
}

it('has the rows of the log at last, however the server cuts, repeats and forgets', async () => {
  await fc.assert(
    fc.asyncProperty(log, fc.array(behaviour, { maxLength: 8 }), async (changes, behaviours) => {
      const calm: Behaviour = { forgets: false, part: 3, again: 2, changes: 0, bytes: Infinity, chunk: 1_000 }
      const server = await streamServer({
        onStream: (stream) => {
          const how = behaviours[server.streams.length - 1] ?? calm
          const [request] = stream.views
          const after = request?.after === undefined ? undefined : Number(request.after)
          const bytes = Buffer.from(textFor(changes, after, how, how === calm))
          const sent = bytes.subarray(0, how.bytes)
          for (const chunk of inParts([...sent], how.chunk)) stream.write(Uint8Array.from(chunk))
          if (how !== calm) stream.end()
        },
      })
      const page = new TestPage()
      const live = connectIn<Shapes>({ url: server.url, getToken: () => 'token' }, page)
      try {
        const view = live.view('groups')
        view.subscribe(() => {})
        await soon(page, () => server.streams.length > behaviours.length)
        // Views stay live for a moment after an orderly end, without the rows of the next connection.
        page.advance(2_001)
        await new Promise((resolve) => setTimeout(resolve))
        await new Promise((resolve) => setImmediate(resolve))
        await soon(page, () => view.status().state === 'live')
        const expected = Object.fromEntries(rowsAt(changes, changes.length))
        expect(rowsOf(view)).toEqual(expected)
      } finally {
        live.close()
      }
    }),
    { numRuns: 40 },
  )
})
