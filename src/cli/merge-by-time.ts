import { Observable } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { Gate, gateOf, underGate } from 'rivulet/operators'

/** One of the merged streams. */
interface Stream {
  /** Closed while an event of the stream is buffered. So at most one chunk of each stream is buffered. */
  readonly gate: Gate
  readonly buffer: ResearchEvent[]
  /** Time of the last emitted event, Unix ms. */
  time: number
  completed: boolean
}

/**
 * Merges finite streams in the order of time. Each stream keeps its own order. The next event is the earliest of the streams'
 * first events; ties go to the earlier stream. An event without a time directly follows its predecessor in the stream.
 */
export function mergeByTime(sources: readonly Observable<ResearchEvent>[]): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    const outer = gateOf(subscriber)
    const streams = sources.map((): Stream => ({
      gate: new Gate(),
      buffer: [],
      time: Number.NEGATIVE_INFINITY,
      completed: false,
    }))
    let emitting = false
    const isPaused = () => outer?.closed === true

    /** Emits until a stream's buffer is empty, or the subscriber pauses. */
    function emit(): void {
      // Not reentrant: an emitted event may open a gate.
      if (emitting) return
      emitting = true
      while (!subscriber.closed && !isPaused()) {
        if (streams.some(({ buffer, completed }) => buffer.length === 0 && !completed)) break
        const [earliest] = streams
          .filter(({ buffer }) => buffer.length > 0)
          .toSorted((one, other) => timeOfNext(one) - timeOfNext(other))
        const event = earliest?.buffer.shift()
        if (earliest === undefined || event === undefined) {
          subscriber.complete()
          break
        }
        earliest.time = Math.max(earliest.time, timeOf(event) ?? earliest.time)
        subscriber.next(event)
        if (earliest.buffer.length === 0) earliest.gate.open()
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
            stream.buffer.push(event)
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

function timeOfNext({ buffer: [next], time }: Stream): number {
  return Math.max(time, (next === undefined ? undefined : timeOf(next)) ?? time)
}

function timeOf({ time }: ResearchEvent): number | undefined {
  const value = time === null ? Number.NaN : Date.parse(time)
  return Number.isNaN(value) ? undefined : value
}
