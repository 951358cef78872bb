import { Observable } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { Gate, gateOf, underGate } from 'rivulet/operators'

/** One of the streams that are merged. */
interface Stream {
  /** Closed while an event of the stream waits. So at most one chunk of each stream is held. */
  readonly gate: Gate
  readonly waiting: ResearchEvent[]
  /** Unix time in ms of the event that came last. */
  time: number
  completed: boolean
}

/**
 * Merges streams that end into one in the order of time. Each stream keeps its own order; of the first events of all
 * streams the earliest is next, and at the same time that of the stream that stands first. An event without a time follows
 * the one before it in its stream.
 */
export function mergeByTime(sources: readonly Observable<ResearchEvent>[]): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    const outer = gateOf(subscriber)
    const streams = sources.map((): Stream => ({
      gate: new Gate(),
      waiting: [],
      time: Number.NEGATIVE_INFINITY,
      completed: false,
    }))
    let emitting = false
    const isHeld = () => outer?.closed === true

    /** Emits until a stream has to be waited for, or the subscriber. */
    function emit(): void {
      // An event that is emitted may open a gate, and this is called within.
      if (emitting) return
      emitting = true
      while (!subscriber.closed && !isHeld()) {
        if (streams.some(({ waiting, completed }) => waiting.length === 0 && !completed)) break
        const [earliest] = streams
          .filter(({ waiting }) => waiting.length > 0)
          .toSorted((one, other) => timeOfNext(one) - timeOfNext(other))
        const event = earliest?.waiting.shift()
        if (earliest === undefined || event === undefined) {
          subscriber.complete()
          break
        }
        earliest.time = Math.max(earliest.time, timeOf(event) ?? earliest.time)
        subscriber.next(event)
        if (earliest.waiting.length === 0) earliest.gate.open()
      }
      emitting = false
    }

    if (outer !== undefined) subscriber.add(outer.onChange(emit))
    for (const [index, source] of sources.entries()) {
      const stream = streams[index]
      if (stream === undefined || subscriber.closed) break
      subscriber.add(
        source.pipe(underGate(stream.gate)).subscribe({
          next(event) {
            stream.waiting.push(event)
            stream.gate.close()
            emit()
          },
          error: (error: unknown) => subscriber.error(error),
          complete() {
            stream.completed = true
            emit()
          },
        }),
      )
    }
    if (sources.length === 0) subscriber.complete()
  })
}

function timeOfNext({ waiting: [next], time }: Stream): number {
  return Math.max(time, (next === undefined ? undefined : timeOf(next)) ?? time)
}

function timeOf({ time }: ResearchEvent): number | undefined {
  const value = time === null ? Number.NaN : Date.parse(time)
  return Number.isNaN(value) ? undefined : value
}
