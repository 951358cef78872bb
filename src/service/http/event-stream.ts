import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { ErrorEvent } from '../../protocol/task-group.ts'
import type { Clock } from '../clock.ts'
import { sseFrame, type EventBatch } from '../../http/server-sent-events.ts'
import { NodeEventWriter, type OpenEventWriter } from '../../http/node-event-writer.ts'

/** The source of a stream of server-sent events. `next` is only called when the client can take more. */
export interface EventFeed {
  /** Returns the next events; an empty batch when there are none yet. */
  next(): EventBatch
  /** Whether no more events will follow. Read when {@link next} returned none. */
  readonly ended: boolean
  /** Calls the listener when there may be more events. Returns a function that removes it. */
  onMore(listener: () => void): () => void
}

/** Settings of {@link streamEvents}. */
export interface EventStreamOptions {
  /** Real time, except in tests. */
  readonly clock: Clock
  /** Text before the first event, with which the headers are sent. Default: the `retry` field of a stream that resumes. */
  readonly opening?: string
  /** Default: a {@link NodeEventWriter}. */
  readonly openWriter?: OpenEventWriter
  /** Ends the stream after this long, in ms of real time. */
  readonly duration: number
  /** Ends the stream when it has sent no event for this long, in ms of real time. Default: never. */
  readonly silence?: number | undefined
  /** Called with an error of the feed, and the `ref_id` that the client got. */
  readonly onError: (error: unknown, ref_id: string) => void
}

/** Interval of comments on an idle stream, in ms of real time, so that proxies do not close it. */
const HEARTBEAT = 15_000
/** The `retry:` of the stream, in ms. Short, since the service usually runs on the same machine. */
const RETRY = 'retry: 20\n\n'

/**
 * Sends the feed's events to one client, with backpressure: at most one batch is buffered in memory. The response ends
 * cleanly when the feed ends, and when the returned function is called.
 */
export function streamEvents(
  outgoing: ServerResponse,
  feed: EventFeed,
  { clock, opening = RETRY, openWriter = openPlain, duration, silence, onError }: EventStreamOptions,
): () => void {
  let closed = false
  let blocked = false
  let lastSent = clock.now()
  let wakeup: NodeJS.Immediate | undefined
  const teardown: (() => void)[] = []

  const stop = () => {
    if (closed) return
    closed = true
    clearImmediate(wakeup)
    for (const undo of teardown) undo()
  }
  const end = () => {
    stop()
    writer.end()
  }
  /** Schedules `pump` once per turn of the event loop. */
  const wake = () => {
    if (!closed && !blocked) wakeup ??= setImmediate(pump)
  }
  const onDrain = () => {
    blocked = false
    wake()
  }
  const pump = () => {
    wakeup = undefined
    try {
      send()
    } catch (error) {
      fail(error)
    }
  }
  const send = () => {
    while (!blocked) {
      const events = feed.next()
      if (events.count === 0) {
        if (feed.ended) end()
        return
      }
      lastSent = clock.now()
      blocked = !writer.write(events)
    }
  }
  /** Sends an `error` event (§4.4) and ends the stream; the client may resume. */
  const fail = (cause: unknown) => {
    const ref_id = randomUUID()
    onError(cause, ref_id)
    const message = 'The service could not continue. Its log has the error under this ref_id'
    const event: ErrorEvent = { type: 'error', error: { ref_id, message } }
    writer.writeRaw(sseFrame({ event: 'error', data: JSON.stringify(event) }))
    end()
  }
  const watchSilence = (limit: number): (() => void) => {
    let cancel: () => void
    // Rescheduling the timer at each event would be slow, so it checks the time of the last event when it fires.
    const wait = (delay: number) => {
      cancel = clock.schedule(delay, () => {
        const left = lastSent + limit - clock.now()
        if (left > 0) wait(left)
        else end()
      })
    }
    wait(limit)
    return () => cancel()
  }

  const writer = openWriter(outgoing, { onDrain, onEnd: stop })
  // Sends the headers at once, since the first event may be late.
  writer.writeRaw(opening)
  const heartbeat = setInterval(() => {
    if (!blocked) blocked = !writer.writeRaw(': still here\n\n')
  }, HEARTBEAT)
  heartbeat.unref()
  teardown.push(() => clearInterval(heartbeat))
  teardown.push(clock.schedule(duration, end))
  if (silence !== undefined) teardown.push(watchSilence(silence))
  teardown.push(feed.onMore(wake))
  // A client that disconnects is not an error.
  outgoing.on('error', stop)
  outgoing.on('close', stop)

  wake()
  return end
}

const openPlain: OpenEventWriter = (outgoing, { onDrain }) => new NodeEventWriter(outgoing, onDrain)
