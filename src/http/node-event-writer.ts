import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { EVENT_STREAM_HEADERS, type EventBatch } from './server-sent-events.ts'

/** Writes server-sent events to one client. */
export interface EventWriter {
  /** Sends events. Returns false when the socket is full; then `onDrain` is called later. */
  write(events: EventBatch): boolean
  /** Sends text that is not an event, such as a comment. Returns false when the socket is full. */
  writeRaw(text: string): boolean
  /** Ends the response cleanly, unless it has ended. */
  end(): void
}

/** The listener of an {@link EventWriter}. */
export interface EventWriterListener {
  /** The socket can take more, after a write that returned false. */
  readonly onDrain: () => void
  /** The writer itself has ended the response. */
  readonly onEnd: () => void
}

/** Opens the writer of a response. */
export type OpenEventWriter = (outgoing: ServerResponse, listener: EventWriterListener) => EventWriter

/** An {@link EventWriter} over `node:http`. The headers are sent with the first write. */
export class NodeEventWriter implements EventWriter {
  readonly #outgoing: ServerResponse

  /** @param headers More headers of the response. */
  constructor(outgoing: ServerResponse, onDrain: () => void, headers: OutgoingHttpHeaders = {}) {
    this.#outgoing = outgoing
    outgoing.writeHead(200, { ...EVENT_STREAM_HEADERS, ...headers })
    outgoing.on('drain', onDrain)
  }

  write({ bytes }: EventBatch): boolean {
    return this.#outgoing.write(bytes)
  }

  writeRaw(text: string): boolean {
    return this.#outgoing.write(text)
  }

  end(): void {
    this.#outgoing.end()
  }
}
