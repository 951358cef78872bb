import * as fc from 'fast-check'
import { memoryStore, openLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { createGateway } from 'rivulet/gateway'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it } from 'vitest'
import { scratchFile } from '../log/sqlite/scratch.ts'
import { ClientModel, openStream } from './client.ts'
import type { Stream } from './client.ts'
import { SECRET, VIEWS } from './fixture.ts'
import type { FetchHandler } from '../../src/http/fetch-handler.ts'

type Step =
  | { readonly do: 'change'; readonly rows: readonly (readonly [key: string, row: string | null])[] }
  /** A generation with these rows. */
  | { readonly do: 'rebuild'; readonly rows: readonly (readonly [key: string, row: string | null])[] }
  /** A client reads so many frames. */
  | { readonly do: 'read'; readonly client: number; readonly frames: number }
  /** A client is cut off, within a frame where this is so, and comes again with what it has. */
  | { readonly do: 'cut'; readonly client: number; readonly isWithinFrame: boolean }

const key = fc
  .tuple(fc.constantFrom('a', 'b', 'a-'), fc.integer({ min: 0, max: 9 }))
  .map(([list, item]) => `${list}/${item}`)
const row = fc.oneof(
  { weight: 3, arbitrary: fc.string({ maxLength: 5 }) },
  { weight: 1, arbitrary: fc.constant(null) },
  // Some fill a frame.
  { weight: 1, arbitrary: fc.constant('x'.repeat(40_000)) },
)
const rows = fc.array(fc.tuple(key, row), { minLength: 1, maxLength: 6 })
const client = fc.integer({ min: 0, max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('change'), rows }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rebuild'), rows }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('read'), client, frames: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cut'), client, isWithinFrame: fc.boolean() }) },
)

/** Cuts each chunk that comes after the signal in its middle, and ends there. */
function cutting(handle: FetchHandler, isCut: () => boolean): FetchHandler {
  return async (request) => {
    const response = await handle(request)
    const reader = response.body?.getReader()
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const part = await reader?.read()
          if (part?.value === undefined) return controller.close()
          if (!isCut()) return controller.enqueue(part.value)
          controller.enqueue(part.value.subarray(0, part.value.byteLength / 2))
          controller.close()
          await reader?.cancel()
        },
        cancel: () => reader?.cancel(),
      },
      { highWaterMark: 0 },
    )
    return new Response(body, response)
  }
}

/** Clients of one gateway, while a test changes the rows of its views. */
async function scene(connect: () => LogStore) {
  const writer = connect()
  const fences = await Promise.all(
    ['items', 'everything'].map((name) => writer.claim(`process:view:${name}`)),
  )
  const cursor = await writer.positionAt('start')
  let before: string | null = null
  const commit = async (changed: readonly (readonly [string, string | null])[], reset: boolean) => {
    const state = [...new Map(changed)].map(([name, text]) => ({
      key: name,
      state: text === null ? null : JSON.stringify(text),
    }))
    for (const fence of fences) {
      const process = { checkpoint: '{"version":1}', reset, state, timers: [] }
      await writer.commit(fence, { expect: before, cursor, acknowledged: [], process })
    }
    before = cursor
  }
  const log = await openLog(connect())
  const gateway = createGateway({ log, views: VIEWS, tokens: { secret: SECRET } })
  const token = await gateway.grant({ sub: 'u', views: Object.keys(VIEWS), sources: ['*'] })
  const views = [{ view: 'items', params: { list: 'a' } }, { view: 'everything' }]
  const clients = [0, 1, 2].map(() => ({ model: new ClientModel(), isCut: false }))
  const streams = new Map<number, Stream>()
  const streamOf = async (at: number) => {
    const known = streams.get(at)
    const state = clients[at]
    if (known !== undefined || state === undefined) return known
    state.isCut = false
    const after = (address: string) => state.model.positions.get(address)
    const wanted = views.map((each) => {
      const position = after(each.params === undefined ? each.view : 'items?list=a')
      return Object.assign({}, each, position !== undefined && { after: position })
    })
    const fetcher = cutting(gateway, () => state.isCut)
    const stream = await openStream('http://localhost/live', token, wanted, { model: state.model, fetcher })
    streams.set(at, stream)
    return stream
  }
  return {
    commit,
    clients,
    async read(at: number, frames: number) {
      const stream = await streamOf(at)
      for (let n = 0; n < frames; n++) {
        // Without more to read, it would wait.
        if (stream === undefined || isCurrent(stream)) return
        await stream.next()
      }
    },
    async cut(at: number, isWithinFrame: boolean) {
      const state = clients[at]
      const stream = streams.get(at)
      streams.delete(at)
      if (state === undefined || stream === undefined) return
      state.isCut = isWithinFrame
      if (isWithinFrame && !isCurrent(stream)) while ((await stream.next()) !== undefined);
      await stream.close()
    },
    /** Each client reads on until it has all that there was. */
    async catchUp() {
      for (const [at] of clients.entries()) {
        await (streams.get(at) ?? (await streamOf(at)))?.close()
        streams.delete(at)
        const stream = await streamOf(at)
        if (stream !== undefined) await untilCurrent(stream)
      }
    },
    /** Each client reads on until it has a row in both views. */
    async follow(name: string, text: string) {
      for (const stream of streams.values()) {
        await stream.untilRows((model) =>
          ['everything', 'items?list=a'].every((address) => model.rows(address)[name] === text),
        )
      }
    },
    async rows() {
      const { state } = await log.state('view:everything').snapshot()
      return Object.fromEntries(state)
    },
    async close() {
      await gateway.close()
      await log.close()
      await writer.close()
    },
  }
}

async function untilCurrent(stream: Stream): Promise<void> {
  while (!isCurrent(stream)) await stream.next()
}

/** Whether each view of a stream has been up to date. */
function isCurrent({ frames }: Stream): boolean {
  return frames.filter(({ name }) => name === 'current').length === 2
}

describe.each([
  [
    'in memory',
    () => {
      const store = memoryStore()
      return () => store.connect()
    },
  ],
  [
    'in SQLite',
    () => {
      const file = scratchFile()
      return () => sqliteStore(file)
    },
  ],
])('clients of a gateway over a log %s', (_, fresh) => {
  it('have the rows of the view, wherever they are cut off and whatever changes meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const { commit, read, cut, catchUp, follow, clients, rows: rowsNow, close } = await scene(fresh())
        try {
          for (const each of steps) {
            if (each.do === 'change') await commit(each.rows, false)
            else if (each.do === 'rebuild') await commit(each.rows, true)
            else if (each.do === 'read') await read(each.client, each.frames)
            else await cut(each.client, each.isWithinFrame)
          }
          await catchUp()
          await commit([['a/9', 'the last one']], false)
          await follow('a/9', 'the last one')
          const expected = await rowsNow()
          const ofList = Object.entries(expected).filter(([name]) => name.startsWith('a/'))
          for (const { model } of clients) {
            expect(model.rows('everything')).toEqual(expected)
            expect(model.rows('items?list=a')).toEqual(Object.fromEntries(ofList))
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 25 },
    )
  })
})
