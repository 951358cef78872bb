import { bufferTime, delay, map, mergeMap, timer } from 'rxjs'
import type { MonoTypeOperatorFunction, Observable } from 'rxjs'
import type { ResearchEventType } from 'rivulet'
import type { ConsumerOptions, Entry, EventLog } from 'rivulet/log'
import { deliver, ofType } from 'rivulet/operators'
import type { DeliverOptions } from 'rivulet/operators'
import { isWanted } from './consumption.ts'
import type { Consumption, Reading } from './consumption.ts'
import type { Host } from './world.ts'

/** What `deliver` gets: an entry, or several of them. */
type Delivered = Entry | readonly Entry[]

/** The types of the events of the script that consumers do not drop: see {@link isWanted}. */
const WANTED = [
  'monitor.event_stream',
  'monitor.error',
  'task_run.state',
  'error',
  'stream.gap',
  'log.gap',
  'source.failed',
  'unknown',
] as const satisfies readonly ResearchEventType[]

/** How long operators hold entries, in ms. */
const HOLD = 200

/** A consumer within one process. */
export class RunningConsumer {
  readonly #host: Host
  readonly #consumption: Consumption
  readonly #log: EventLog
  /** The handler calls that are still to fail, and the duration of each. */
  readonly #attempts = new WeakMap<Delivered, { failures: number; readonly takes: number | undefined }>()
  readonly #groups = new WeakMap<Entry, readonly Entry[]>()
  #reading: Reading | undefined
  #end = () => {}
  readonly #stopping = new AbortController()
  /** Resolves when the subscription to `deliver` has ended. */
  #ended = Promise.resolve()

  constructor(host: Host, consumption: Consumption, log: EventLog) {
    this.#host = host
    this.#consumption = consumption
    this.#log = log
    this.#begin()
  }

  /** Ends the subscription and subscribes again, in the same process. */
  restart(): void {
    if (this.#reading?.isOver === true) return
    this.kill()
    this.#begin()
  }

  /** Ends the subscription. */
  kill(): void {
    if (this.#reading !== undefined) this.#reading.isOver = true
    this.#end()
  }

  /** Ends what is in flight. The log ends a job itself. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#ended
  }

  /** The log was closed, and everything is saved. */
  stopped(): void {
    if (this.#reading?.isOver === false) this.#reading.stopped()
  }

  #begin(): void {
    const { name, script } = this.#consumption
    const { scheduler } = this.#host.world
    const reading = this.#consumption.subscribe(() => this.#host.isCommitting(`consumer:${name}`))
    this.#reading = reading
    const handler = (value: Delivered) => this.#handle(reading, value)
    const options: ConsumerOptions = {
      maxUnacknowledged: script.maxUnacknowledged,
      revisions: script.revisions,
      scheduler,
      ...(script.drops === 'types' && { types: WANTED }),
      ...(script.drops === 'where' && { where: (entry) => isWanted(script, entry) }),
    }
    const failed = (error: unknown) => {
      if (reading.isOver) return
      reading.isOver = true
      this.#host.failed(error)
      scheduler.schedule(() => this.#resume(reading), this.#host.world.setup.pause)
    }
    if (script.isJob && script.between === 'nothing' && script.drops !== 'ofType') {
      const job = this.#log.consume(name, { ...options, ...this.#delivery }, handler)
      this.#end = () => void job.stop().catch(() => {})
      job.done.catch(failed)
      return
    }
    const entries: Observable<Entry> =
      script.drops === 'ofType'
        ? this.#log.consume(name, options).pipe(ofType(...WANTED))
        : this.#log.consume(name, options)
    const ended = Promise.withResolvers<void>()
    this.#ended = ended.promise
    const subscription = this.#between(entries)
      .pipe(deliver(handler, { ...this.#delivery, signal: this.#stopping.signal }))
      .subscribe({
        error: (error: unknown) => {
          ended.resolve()
          failed(error)
        },
        complete: ended.resolve,
      })
    this.#end = () => subscription.unsubscribe()
  }

  /** Subscribes again after a failure. */
  #resume(failed: Reading): void {
    if (!this.#host.isEnding && this.#reading === failed) this.#begin()
  }

  get #delivery(): DeliverOptions<Delivered> & Pick<ConsumerOptions, 'scheduler'> {
    const { concurrency, highWaterMark, retries, keyed, hasDeadLetters } = this.#consumption.script
    const { random, scheduler } = this.#host.world
    return {
      concurrency,
      highWaterMark,
      retries,
      initialDelay: 20,
      maxDelay: 50,
      random,
      scheduler,
      // Virtual time may jump while a save takes turns of the event loop.
      drainTimeout: Infinity,
      ...(hasDeadLetters && { deadLetters: 'log' as const }),
      ...(keyed && { key: (value: Delivered) => this.#entriesOf(value)[0]?.source ?? '' }),
    }
  }

  #between(entries: Observable<Entry>): Observable<Delivered> {
    const { scheduler, random } = this.#host.world
    switch (this.#consumption.script.between) {
      case 'nothing':
        return entries
      case 'delay':
        return entries.pipe(delay(HOLD, scheduler))
      case 'batches':
        return entries.pipe(bufferTime(HOLD, null, 3, scheduler))
      default: {
        const later: MonoTypeOperatorFunction<Entry> = mergeMap((entry) =>
          timer(random() * HOLD, scheduler).pipe(map(() => entry)),
        )
        return entries.pipe(later)
      }
    }
  }

  #entriesOf(value: Delivered): readonly Entry[] {
    if (!('position' in value)) return value
    const entries = this.#groups.get(value) ?? [value]
    this.#groups.set(value, entries)
    return entries
  }

  #handle(reading: Reading, value: Delivered): Promise<void> | void {
    const { handlers, scheduler } = this.#host.world
    const entries = this.#entriesOf(value)
    // An empty batch, which comes while there are no entries.
    if (entries.length === 0) return
    reading.began(entries)
    const attempt = this.#attempts.get(value) ?? { ...handlers() }
    this.#attempts.set(value, attempt)
    const work = () => {
      if (attempt.failures-- > 0) {
        reading.refused(entries)
        throw new Error('refused')
      }
      reading.ended(entries)
    }
    const { takes } = attempt
    if (takes === undefined) return work()
    return new Promise((resolve, reject) => {
      scheduler.schedule(() => {
        // A killed process does nothing more.
        if (this.#host.isKilled) return
        try {
          resolve(work())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      }, takes)
    })
  }
}
