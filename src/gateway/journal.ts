import type { EventLog } from '../log/event-log/event-log.ts'
import { LogClosedError, LogInUseError } from '../log/errors.ts'
import { MAX_APPEND_ENTRIES } from '../log/store/contract.ts'
import type { Entry } from '../log/store/contract.ts'
import type { RecordedStream, Recorder } from '../log/record/recorder.ts'
import type { ResearchEvent } from '../protocol/event.ts'

/** Maximum number of gateways that write into one log at the same time. */
const MAX_GATEWAYS = 10_000

/** A recorder with its stream, until an append fails. */
interface Writer {
  readonly recorder: Recorder
  readonly stream: RecordedStream
  failure: { readonly error: unknown } | undefined
}

/** An event that is to be appended. */
interface Pending {
  readonly event: ResearchEvent
  readonly done: PromiseWithResolvers<void>
}

/**
 * Appends the actions of a gateway to its log. Events that come during an append go into the next one together, and each call waits for
 * its own.
 */
export class Journal {
  readonly #log: EventLog
  #writer: Promise<Writer> | undefined
  #pending: Pending[] = []
  /** Appends pending events, while there are some. */
  #appending: Promise<void> | undefined
  #isClosed = false

  constructor(log: EventLog) {
    this.#log = log
  }

  /** Resolves once the event survives a crash. Rejects with the error of the log. */
  record(event: ResearchEvent): Promise<void> {
    if (this.#isClosed) return Promise.reject(new LogClosedError('the gateway'))
    const done = Promise.withResolvers<void>()
    this.#pending.push({ event, done })
    this.#appending ??= this.#append()
    return done.promise
  }

  /**
   * Records an event if the log does not have its identity yet, from any process that writes to it. Resolves with whether it has
   * been recorded, and with false if that is unknown.
   *
   * @param isOwn Whether an entry is from this call, and not from another call with the same identity.
   */
  async recordOnce(event: ResearchEvent, isOwn: (entry: Entry) => boolean): Promise<boolean> {
    let position = await this.#log.positionAt('end')
    await this.record(event)
    for (;;) {
      const page = await this.#log.read(position, { limit: 1_000, types: [event.type] })
      if (page.entries.some(isOwn)) return true
      if (page.isEnd) return false
      position = page.position
    }
  }

  /** Appends the recorded events. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#appending
    const writer = await this.#writer?.catch(() => {})
    await writer?.recorder.close()
  }

  async #append(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0, MAX_APPEND_ENTRIES)
      try {
        const writer = await this.#open()
        for (const { event } of batch) writer.stream.add(event)
        await writer.recorder.flushed(writer.stream)
        if (writer.failure !== undefined) throw writer.failure.error
        for (const { done } of batch) done.resolve()
      } catch (error) {
        for (const { done } of batch) done.reject(error)
      }
    }
    this.#appending = undefined
  }

  #open(): Promise<Writer> {
    const opening = (this.#writer ??= this.#opened())
    // The next call tries again.
    opening.catch(() => this.#forget(opening))
    return opening
  }

  async #opened(): Promise<Writer> {
    let writer: Writer | undefined
    const recorder = this.#log.recorder((error) => {
      if (writer !== undefined) writer.failure = { error }
      this.#writer = undefined
      void recorder.close()
    })
    try {
      writer = { recorder, stream: await firstFree(recorder), failure: undefined }
      return writer
    } catch (error) {
      await recorder.close()
      throw error
    }
  }

  #forget(opening: Promise<Writer>): void {
    if (this.#writer === opening) this.#writer = undefined
  }
}

/** The first stream that no other gateway of the log has. Numbers, so that a log does not collect names. */
async function firstFree(recorder: Recorder): Promise<RecordedStream> {
  for (let number = 1; ; number++) {
    try {
      return await recorder.open(`gateway:${number}`)
    } catch (error) {
      if (!(error instanceof LogInUseError) || number === MAX_GATEWAYS) throw error
    }
  }
}
