import { batchOf, NO_EVENTS } from '../../http/server-sent-events.ts'
import type { EventFeed } from '../http/event-stream.ts'

/** Length at which a batch of events ends, in characters; the event that reaches it is still part of the batch. */
const BATCH_CHARACTERS = 16 * 1024

/**
 * The stream of one answer: the events before the answer at once, and the events of the answer when it is ready. They are created while
 * the client reads, so that a slow client holds little more than the answer itself. A rejection is an error of the stream.
 */
export function answerFeed(before: Iterable<string>, answer: Promise<Iterable<string>>): EventFeed {
  const listeners = new Set<() => void>()
  let current = before[Symbol.iterator]()
  let following: Iterator<string> | undefined
  let failure: { readonly error: unknown } | undefined
  let ended = false

  const settled = () => {
    for (const listener of listeners) listener()
  }
  void answer
    .then(
      (events) => (following = events[Symbol.iterator]()),
      (error: unknown) => (failure = { error }),
    )
    .finally(settled)

  return {
    next() {
      const first = takeBatch(current)
      if (first.length > 0) return batchOf(first)
      if (failure !== undefined) throw failure.error
      if (following === undefined) return NO_EVENTS
      current = following
      const batch = takeBatch(current)
      ended = batch.length === 0
      return batchOf(batch)
    },
    get ended() {
      return ended
    },
    onMore(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

function takeBatch(events: Iterator<string>): string[] {
  const batch: string[] = []
  for (let characters = 0; characters < BATCH_CHARACTERS;) {
    const { done, value } = events.next()
    if (done === true) break
    batch.push(value)
    characters += value.length
  }
  return batch
}
