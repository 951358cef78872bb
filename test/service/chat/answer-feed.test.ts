import { expect, it } from 'vitest'
import { answerFeed } from '../../../src/service/conversations/answer-feed.ts'

it('the feed of an answer creates its events only as they are read, in bounded batches', async () => {
  let created = 0
  function* endless() {
    for (;;) {
      created += 1
      yield 'x'.repeat(1_024)
    }
  }
  const answer = Promise.resolve(endless())
  const feed = answerFeed(['first'], answer)
  const first = feed.next().count
  await answer
  const batch = feed.next()

  expect([first, batch.count, created]).toEqual([1, 16, 16])
})
