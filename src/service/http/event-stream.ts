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

const openPlain: OpenEventWriter = (outgoing, { onDrain }) => new NodeEventWriter(outgoing, onDrain)

/**
 * Sends the feed's events to one client, with backpressure: at most one batch is buffered in memory. The response ends
 * cleanly when the feed ends, and when the returned function is called.
 */
export function streamEvents(
  outgoing: ServerResponse,
  feed: EventFeed,
  options: EventStreamOptions,
): () => void {
  const stream = new EventStream(outgoing, feed, options)
  return () => stream.end()
}

class EventStream {
  readonly #clock: Clock
  readonly #feed: EventFeed
  readonly #writer: ReturnType<OpenEventWriter>
  readonly #onError: EventStreamOptions['onError']
  readonly #teardown: (() => void)[] = []
  #isClosed = false
  #isBlocked = false
  #lastSent: number
  #wakeup: NodeJS.Immediate | undefined

  constructor(outgoing: ServerResponse, feed: EventFeed, options: EventStreamOptions) {
    const { clock, opening = RETRY, openWriter = openPlain, duration, silence, onError } = options
    this.#clock = clock
    this.#feed = feed
    this.#onError = onError
    this.#lastSent = clock.now()
    const stop = () => this.#stop()
    this.#writer = openWriter(outgoing, { onDrain: () => this.#drained(), onEnd: stop })
    // Sends the headers at once, since the first event may be late.
    this.#writer.writeRaw(opening)
    this.#teardown.push(this.#beat())
    this.#teardown.push(clock.schedule(duration, () => this.end()))
    if (silence !== undefined) this.#teardown.push(this.#watchSilence(silence))
    this.#teardown.push(feed.onMore(() => this.#wake()))
    // A client that disconnects is not an error.
    outgoing.on('error', stop)
    outgoing.on('close', stop)
    this.#wake()
  }

  end(): void {
    this.#stop()
    this.#writer.end()
  }

  #stop(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearImmediate(this.#wakeup)
    for (const undo of this.#teardown) undo()
  }

  /** Schedules a turn of sending, once per turn of the event loop. */
  #wake(): void {
    if (!this.#isClosed && !this.#isBlocked) this.#wakeup ??= setImmediate(() => this.#pump())
  }

  #drained(): void {
    this.#isBlocked = false
    this.#wake()
  }

  #pump(): void {
    this.#wakeup = undefined
    try {
      this.#send()
    } catch (error) {
      this.#fail(error)
    }
  }

  #send(): void {
    while (!this.#isBlocked) {
      const events = this.#feed.next()
      if (events.count === 0) {
        if (this.#feed.ended) this.end()
        return
      }
      this.#lastSent = this.#clock.now()
      this.#isBlocked = !this.#writer.write(events)
    }
  }

  /** Sends an `error` event (§4.4) and ends the stream; the client may resume. */
  #fail(cause: unknown): void {
    const ref_id = randomUUID()
    this.#onError(cause, ref_id)
    const message = 'The service could not continue. Its log has the error under this ref_id'
    const event: ErrorEvent = { type: 'error', error: { ref_id, message } }
    this.#writer.writeRaw(sseFrame({ event: 'error', data: JSON.stringify(event) }))
    this.end()
  }

  /** Sends comments at an interval. Returns a function that ends them. */
  #beat(): () => void {
    const heartbeat = setInterval(() => {
      if (!this.#isBlocked) this.#isBlocked = !this.#writer.writeRaw(': still here\n\n')
    }, HEARTBEAT)
    heartbeat.unref()
    return () => clearInterval(heartbeat)
  }

  /** Ends the stream when it has sent nothing for this long. Returns a function that stops to watch. */
  #watchSilence(limit: number): () => void {
    let cancel: () => void
    // Rescheduling the timer at each event would be slow, so it checks the time of the last event when it fires.
    const wait = (delay: number) => {
      cancel = this.#clock.schedule(delay, () => {
        const left = this.#lastSent + limit - this.#clock.now()
        if (left > 0) wait(left)
        else this.end()
      })
    }
    wait(limit)
    return () => cancel()
  }
}
