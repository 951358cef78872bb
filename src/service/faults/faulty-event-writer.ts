import type { ServerResponse } from 'node:http'
import { constants, createGzip, type Gzip } from 'node:zlib'
import { concerns, type CutPoint, type FaultOf, type Faults } from './faults.ts'
import { type EventBatch, framesOf } from '../../http/server-sent-events.ts'
import { NodeEventWriter } from '../../http/node-event-writer.ts'
import type { EventWriter, EventWriterListener, OpenEventWriter } from '../../http/node-event-writer.ts'
import { cutLength, malformed } from './malformed-event.ts'

/** The faults that strike between or within events of a stream. */
const IN_STREAM = ['cut', 'stall', 'close', 'slow', 'malformed'] as const
/** Maximum number of pieces that the fault `slow` sends one by one. */
const SLOW_PIECES = 1_000

/** Opens writers for requests to this path that inject faults. */
export function openFaultyWriter(faults: Faults, path: string): OpenEventWriter {
  return (outgoing, listener) => new FaultyEventWriter(outgoing, listener, faults, path)
}

/**
 * Wraps a writer and injects faults. A fault between two events strikes when the first one is written; a fault within an event
 * when that event is written.
 */
class FaultyEventWriter implements EventWriter {
  readonly #outgoing: ServerResponse
  readonly #listener: EventWriterListener
  readonly #faults: Faults
  /** The path of the request. */
  readonly #path: string
  readonly #writer: EventWriter
  readonly #gzip: Gzip | undefined
  /** Events that wait for the fault `slow`. */
  #waiting: string[] = []
  /** Number of events sent. */
  #sent = 0
  #nextPiece: NodeJS.Timeout | undefined
  /** Whether the fault `stall` has struck: the socket stays open, and nothing more is sent. */
  #stalled = false
  /** Whether the response has ended, or a fault lets nothing more be sent. */
  #ended = false

  constructor(outgoing: ServerResponse, listener: EventWriterListener, faults: Faults, path: string) {
    this.#outgoing = outgoing
    this.#listener = listener
    this.#faults = faults
    this.#path = path
    const isZipped = faults.take('gzip', (fault) => concerns(fault, path)) !== undefined
    this.#writer = new NodeEventWriter(
      outgoing,
      () => this.#drained(),
      isZipped ? { 'content-encoding': 'gzip' } : {},
    )
    if (isZipped) this.#gzip = openGzip(outgoing)
    const stopListening = faults.onChange(() => this.#strike())
    outgoing.on('close', () => {
      stopListening()
      this.#dropWaiting()
    })
    // After the stream has written its first line.
    queueMicrotask(() => this.#strike())
  }

  write(events: EventBatch): boolean {
    if (this.#hasFaults()) {
      this.#waiting = framesOf(events)
      return this.#sendWaiting()
    }
    this.#sent += events.count
    return this.#send(events.bytes)
  }

  writeRaw(text: string): boolean {
    return this.#send(text)
  }

  end(): void {
    this.#dropWaiting()
    // A stalled response would delay the closing of the server.
    if (this.#stalled) this.#outgoing.destroy()
    if (this.#ended) return
    this.#ended = true
    this.#end()
  }

  #end(): void {
    if (this.#gzip === undefined) this.#writer.end()
    else this.#gzip.end()
  }

  #dropWaiting(): void {
    clearTimeout(this.#nextPiece)
    this.#waiting = []
  }

  /** Injects a fault that is due after the last event. A slow event is completed first. */
  #strike(): void {
    if (!this.#ended && this.#nextPiece === undefined) this.#strikeAfter('')
  }

  /** Whether armed faults require sending events one by one. */
  #hasFaults(): boolean {
    return this.#faults.find(IN_STREAM, (fault) => concerns(fault, this.#path)) !== undefined
  }

  #sendWaiting(): boolean {
    let text = ''
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      const fault = this.#takeWithin()
      if (fault?.kind === 'cut') return this.#cutWithin(text, event, fault.at)
      if (fault?.kind === 'slow') return this.#sendSlowly(text, event, fault)
      text += fault === undefined ? event : malformed(event)
      this.#sent += 1
      if (this.#strikeAfter(text)) return false
    }
    return this.#send(text)
  }

  /** Takes a fault that is due within the next event. */
  #takeWithin(): FaultOf<'cut' | 'slow' | 'malformed'> | undefined {
    return this.#faults.take(
      ['cut', 'slow', 'malformed'],
      (fault) => this.#isDue(fault) && (fault.kind !== 'cut' || isWithinEvent(fault)),
    )
  }

  /** Injects a fault that is due after this text, and sends the text. Returns whether there was one. */
  #strikeAfter(text: string): boolean {
    const fault = this.#faults.take(
      ['cut', 'stall', 'close'],
      (armed) => this.#isDue(armed) && (armed.kind !== 'cut' || !isWithinEvent(armed)),
    )
    if (fault === undefined) return false
    this.#finish()
    if (fault.kind === 'cut') {
      this.#sendLast(text, () => this.#outgoing.destroy())
    } else {
      this.#send(text)
      if (fault.kind === 'close') this.#end()
      else this.#stalled = true
    }
    return true
  }

  #isDue(fault: FaultOf<(typeof IN_STREAM)[number]>): boolean {
    return (fault.after ?? 0) <= this.#sent && concerns(fault, this.#path)
  }

  #cutWithin(text: string, event: string, at: CutPoint = 'event'): false {
    const whole = Buffer.from(event)
    const part = whole.subarray(0, cutLength(whole, at))
    const destroy = () => this.#outgoing.destroy()
    this.#finish()
    const { chunkedEncoding, socket } = this.#outgoing
    if (at === 'chunk' && chunkedEncoding && socket !== null) {
      const chunk = Buffer.concat([Buffer.from(`${whole.length.toString(16)}\r\n`), part])
      this.#sendLast(text, () => socket.write(chunk, destroy))
    } else {
      this.#sendLast(Buffer.concat([Buffer.from(text), part]), destroy)
    }
    return false
  }

  #sendSlowly(text: string, event: string, { bytes = 1, interval = 1 }: FaultOf<'slow'>): false {
    this.#send(text)
    const whole = Buffer.from(event)
    const slow = Math.min(whole.length, bytes * SLOW_PIECES)
    let offset = 0
    const sendPiece = () => {
      const end = offset < slow ? offset + bytes : whole.length
      this.#send(whole.subarray(offset, end))
      offset = end
      if (offset < whole.length) {
        this.#nextPiece = setTimeout(sendPiece, interval)
        return
      }
      this.#nextPiece = undefined
      this.#sent += 1
      if (!this.#strikeAfter('') && this.#sendWaiting()) this.#listener.onDrain()
    }
    this.#nextPiece = setTimeout(sendPiece, interval)
    return false
  }

  /** An empty write to the socket calls back when everything before it is sent. */
  #sendLast(bytes: string | Uint8Array, sent: () => void): void {
    const { socket } = this.#outgoing
    if (this.#gzip === undefined) this.#outgoing.write(bytes, sent)
    else this.#gzip.write(bytes, () => socket?.write('', sent))
  }

  #send(bytes: string | Uint8Array): boolean {
    if (bytes.length === 0) return true
    if (this.#gzip === undefined) return this.#outgoing.write(bytes)
    this.#gzip.write(bytes, () => this.#drained())
    return false
  }

  #drained(): void {
    const isFull = this.#nextPiece !== undefined || this.#outgoing.writableNeedDrain
    if (!isFull) this.#listener.onDrain()
  }

  #finish(): void {
    this.#ended = true
    this.#dropWaiting()
    this.#listener.onEnd()
  }
}

function isWithinEvent({ at = 'event' }: FaultOf<'cut'>): boolean {
  return at !== 'event'
}

/** Compresses the written bytes, and flushes after every write, so that an event does not wait for the next. */
function openGzip(outgoing: ServerResponse): Gzip {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH })
  gzip.on('data', (bytes: Buffer) => outgoing.write(bytes))
  gzip.on('end', () => outgoing.end())
  outgoing.on('close', () => gzip.destroy())
  return gzip
}
