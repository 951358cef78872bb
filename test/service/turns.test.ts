import { expect, it } from 'vitest'
import { Turns } from '../../src/service/turns.ts'

it('one work is done after the other, also after one that fails, and none whose caller is gone', async () => {
  const turns = new Turns()
  const caller = new AbortController()
  const log: string[] = []
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const work =
    (name: string, end: Promise<void> = Promise.resolve()) =>
    async () => {
      log.push(`${name} starts`)
      await end
      log.push(`${name} ends`)
      if (name === 'b') throw new Error('failed')
      return name
    }
  const results = Promise.allSettled([
    turns.take(work('a', held), caller.signal),
    turns.take(work('b')),
    turns.take(work('c'), caller.signal),
    turns.take(work('d')),
  ])
  await Promise.resolve()
  caller.abort(new Error('gone'))
  release()

  expect((await results).map((result) => ('value' in result ? result.value : result.reason.message))).toEqual(
    ['a', 'failed', 'gone', 'd'],
  )
  expect(log).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'd starts', 'd ends'])
})
