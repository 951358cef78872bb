import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { ErrorEvent } from '../../protocol/task-group.ts'
import type { Clock } from '../clock.ts'
import type { Faults } from '../faults.ts'
import type { EventBatch } from './event-batch.ts'
import { EventWriter } from './event-writer.ts'

/** What a stream of server-sent events is fed from. It is asked for more only when the reader has room. */
export interface EventFeed {
  /** The next few events; none when there are none right now. */
  next(): EventBatch
  /** Whether nothing more will come. Asked when {@link next} gave nothing. */
  readonly ended: boolean
  /** Calls the listener when there may be more, until the function that it returns is called. */
  onMore(listener: () => void): () => void
}

/** How a stream is kept, and how it ends. */
export interface EventStreamOptions {
  /** Real time, but for tests. */
  readonly clock: Clock
  readonly faults: Faults
  /** The path of the request, which a fault may name. */
  readonly path: string
  /** Ends the stream after this long, in ms of real time. */
  readonly duration: number
  /** Ends the stream when it has sent no event for this long, in ms of real time. Default never. */
  readonly silence?: number | undefined
  /** Hears why a feed failed, with the reference that the reader got. */
  readonly onError: (error: unknown, ref_id: string) => void
}

/** Real time between two comments on a quiet stream, in ms, so that nobody in between takes it for dead. */
const HEARTBEAT = 15_000
/** Asks the reader to come back after so many ms. It is short, as the service is most often on the same machine. */
const RETRY = 20

/**
 * Sends the feed's events to one reader, and stops asking the feed while the reader is behind: what waits in memory is
 * one batch, however long the feed and however slow the reader. The answer ends cleanly when the feed does, and when the
 * function that is returned is called.
 */
export function streamEvents(
  outgoing: ServerResponse,
  feed: EventFeed,
  { clock, faults, path, duration, silence, onError }: EventStreamOptions,
): () => void {
  let closed = false
  let blocked = false
  let lastSent = clock.now()
  let wakeup: NodeJS.Immediate | undefined
  const teardown: (() => void)[] = []

  const stop = () => {
    if (closed) return false
    closed = true
    clearImmediate(wakeup)
    writer.stop()
    for (const undo of teardown) undo()
    return true
  }
  const end = () => {
    if (stop()) writer.end()
  }
  /** Runs the pump once for all that happens in this turn of the event loop. */
  const wake = () => {
    if (!closed && !blocked) wakeup ??= setImmediate(pump)
  }
  const onRoom = () => {
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
  /** Tells the reader that there is a problem (§4.4), who may come back for the rest. */
  const fail = (cause: unknown) => {
    const ref_id = randomUUID()
    onError(cause, ref_id)
    const message = 'The service failed to read on. Its log tells more under this reference'
    const event: ErrorEvent = { type: 'error', error: { ref_id, message } }
    writer.writeRaw(`event: error\ndata: ${JSON.stringify(event)}\n\n`)
    end()
  }
  const watchSilence = (limit: number): (() => void) => {
    let cancel: () => void
    // The timer is not moved at each event; it looks how long the silence has been when it is due.
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

  const writer = new EventWriter(outgoing, { faults, path, onRoom, onOver: stop })
  // The status line goes out at once with it, although the first event may be long in coming.
  writer.writeRaw(`retry: ${RETRY}\n\n`)
  const heartbeat = setInterval(() => {
    if (!blocked) blocked = !writer.writeRaw(': still here\n\n')
  }, HEARTBEAT)
  heartbeat.unref()
  teardown.push(() => clearInterval(heartbeat))
  teardown.push(clock.schedule(duration, end))
  if (silence !== undefined) teardown.push(watchSilence(silence))
  teardown.push(feed.onMore(wake))
  // Faults that are armed now may be due, or be about the feed.
  teardown.push(faults.onChange(() => writer.strike() || wake()))
  // A reader that went away is no error here.
  outgoing.on('error', stop)
  outgoing.on('close', stop)

  if (!writer.strike()) wake()
  // A stalled reader would else hold up the closing of the server.
  return () => (writer.stalled ? void outgoing.destroy() : end())
}
