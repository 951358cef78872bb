import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from 'rivulet/log'
import { define, from, join, keyBy, map } from 'rivulet/streams'
import { expect, it, onTestFinished } from 'vitest'
import { simulatedStore } from '../../../src/log/memory/store.ts'
import { append } from '../append.ts'
import { change } from '../../operators/events.ts'
import { readAll } from '../conformance/fixture.ts'

const BEGIN = Date.UTC(2026, 0, 1)

it('finds the partners of an event among thousands that wait, if a stream is joined with itself', async () => {
  const count = 1_200
  let now = BEGIN
  const store = simulatedStore({ clock: () => now })
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const changes = from('monitor.event_stream').pipe(
    map(({ id, source }) => ({ id, source })),
    keyBy(({ source }) => source),
  )
  const neighbours = define(
    'neighbours',
    { version: 1 },
    changes.pipe(join('pairs', changes, { within: 10 })),
  )
  for (let n = 0; n < count; n += 100) {
    now += 1_000
    const events = Array.from({ length: 100 }, (_, i) => ({
      ...change(`${n + i}`),
      time: new Date(BEGIN + 10 * (n + i)).toISOString(),
    }))
    await append(store, events)
  }
  now += 1_000_000
  log.process(neighbours)
  while ((await store.reader('process:neighbours'))?.cursor !== (await store.positionAt('end'))) await turn()
  const entries = await readAll(store, undefined, { types: ['join.result'] })
  const pairs = new Set(
    entries.map(({ data }) => {
      const { left, right } = Object(data)
      return `${left.id} ${right.id}`
    }),
  )
  const expected = Array.from({ length: count - 1 }, (_, n) => [`${n} ${n + 1}`, `${n + 1} ${n}`]).flat()
  expect([...pairs].toSorted()).toEqual(expected.toSorted())
})
