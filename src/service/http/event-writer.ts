import type { ServerResponse } from 'node:http'
import { constants, createGzip, type Gzip } from 'node:zlib'
import { concerns, type CutPoint, type FaultOf, type Faults } from '../faults.ts'
import { type EventBatch, framesOf } from './event-batch.ts'
import { cutLength, malformed } from './spoilt-event.ts'

/** What a writer works with, and whom it tells. */
export interface EventWriterOptions {
  readonly faults: Faults
  /** The request's path, which a fault may name. */
  readonly path: string
  /** There is room again, after a write that left none. */
  readonly onRoom: () => void
  /** A fault has struck after which nothing more is to be written. */
  readonly onOver: () => void
}

/** The faults that strike at, or within, one of a stream's events. */
const IN_STREAM = ['cut', 'stall', 'close', 'slow', 'malformed'] as const
/** Pieces of an event that the fault `slow` sends one by one. */
const SLOW_PIECES = 1_000

/**
 * The way of framed events to their reader, and all that can be told to go wrong on it. A fault between two events
 * strikes as soon as the first one is written; a fault within an event waits for it.
 */
export class EventWriter {
  readonly #outgoing: ServerResponse
  readonly #options: EventWriterOptions
  readonly #gzip: Gzip | undefined
  /** Events behind one that goes out slowly. */
  #waiting: string[] = []
  /** Events that went out. */
  #sent = 0
  #nextPiece: NodeJS.Timeout | undefined
  #stalled = false

  /** Sets the status line and the headers, which leave with what is written first. */
  constructor(outgoing: ServerResponse, options: EventWriterOptions) {
    this.#outgoing = outgoing
    this.#options = options
    const isZipped = options.faults.take('gzip', (fault) => concerns(fault, options.path)) !== undefined
    outgoing.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      ...(isZipped && { 'content-encoding': 'gzip' }),
    })
    outgoing.on('drain', () => this.#room())
    if (isZipped) this.#gzip = openGzip(outgoing)
  }

  /** Whether a fault keeps the reader waiting for ever: the socket is open, and nothing more will come. */
  get stalled(): boolean {
    return this.#stalled
  }

  /** Sends events. Whether there is room for more; where there is none, `onRoom` tells when there is. */
  write(events: EventBatch): boolean {
    if (this.#mayBeStruck()) {
      this.#waiting = framesOf(events)
      return this.#proceed()
    }
    this.#sent += events.count
    return this.#send(events.bytes)
  }

  /** Sends what is no event, such as a comment. Whether there is room for more, as above. */
  writeRaw(text: string): boolean {
    return this.#send(text)
  }

  /** Lets a fault strike that is due between the last event and the next one. Whether one did. */
  strike(): boolean {
    // An event that goes out slowly comes first.
    return this.#nextPiece === undefined && this.#strikeAfter('')
  }

  /** Ends the stream in good order. */
  end(): void {
    this.stop()
    if (this.#gzip === undefined) this.#outgoing.end()
    else this.#gzip.end()
  }

  /** Forgets what still waits. */
  stop(): void {
    clearTimeout(this.#nextPiece)
    this.#waiting = []
  }

  /** Whether faults are armed for which each event has to be looked at. Else a batch goes out as it came. */
  #mayBeStruck(): boolean {
    const { faults, path } = this.#options
    return faults.find(IN_STREAM, (fault) => concerns(fault, path)) !== undefined
  }

  #proceed(): boolean {
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

  /** A fault that is due within the next event. */
  #takeWithin(): FaultOf<'cut' | 'slow' | 'malformed'> | undefined {
    return this.#options.faults.take(
      ['cut', 'slow', 'malformed'],
      (fault) => this.#isDue(fault) && (fault.kind !== 'cut' || isWithinEvent(fault)),
    )
  }

  /** Lets a fault strike that is due once this text is sent, which goes out with it. Whether one did. */
  #strikeAfter(text: string): boolean {
    const fault = this.#options.faults.take(
      ['cut', 'stall', 'close'],
      (armed) => this.#isDue(armed) && (armed.kind !== 'cut' || !isWithinEvent(armed)),
    )
    if (fault === undefined) return false
    this.#over()
    if (fault.kind === 'cut') {
      this.#sendLast(text, () => this.#outgoing.destroy())
    } else {
      this.#send(text)
      if (fault.kind === 'close') this.end()
      else this.#stalled = true
    }
    return true
  }

  #isDue(fault: FaultOf<(typeof IN_STREAM)[number]>): boolean {
    return (fault.after ?? 0) <= this.#sent && concerns(fault, this.#options.path)
  }

  #cutWithin(text: string, event: string, at: CutPoint = 'event'): false {
    const whole = Buffer.from(event)
    const part = whole.subarray(0, cutLength(whole, at))
    const destroy = () => this.#outgoing.destroy()
    this.#over()
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
      if (!this.#strikeAfter('') && this.#proceed()) this.#options.onRoom()
    }
    this.#nextPiece = setTimeout(sendPiece, interval)
    return false
  }

  /** Node takes an empty write for one, and calls back when all before it has left. */
  #sendLast(bytes: string | Buffer, left: () => void): void {
    const { socket } = this.#outgoing
    if (this.#gzip === undefined) this.#outgoing.write(bytes, left)
    else this.#gzip.write(bytes, () => socket?.write('', left))
  }

  #send(bytes: string | Buffer): boolean {
    if (bytes.length === 0) return true
    if (this.#gzip === undefined) return this.#outgoing.write(bytes)
    this.#gzip.write(bytes, () => this.#room())
    return false
  }

  #room(): void {
    const isTaken = this.#nextPiece !== undefined || this.#outgoing.writableNeedDrain
    if (!isTaken) this.#options.onRoom()
  }

  #over(): void {
    this.stop()
    this.#options.onOver()
  }
}

function isWithinEvent({ at = 'event' }: FaultOf<'cut'>): boolean {
  return at !== 'event'
}

/** Compresses what is written, and lets every write through at once: an event must not wait for the next ones. */
function openGzip(outgoing: ServerResponse): Gzip {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH })
  gzip.on('data', (bytes: Buffer) => outgoing.write(bytes))
  gzip.on('end', () => outgoing.end())
  outgoing.on('close', () => gzip.destroy())
  return gzip
}
