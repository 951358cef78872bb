import { filter, tap } from 'rxjs'
import type { SchedulerLike, Subscription } from 'rxjs'
import { createClient, openCheckpoint } from 'rivulet'
import type { Checkpoint, ResearchClient, ResearchEvent } from 'rivulet'
import { deliver } from 'rivulet/operators'
import { createWebhookReceiver } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import { keyOf } from './expected-events.ts'
import { SECRET } from './webhook-sender.ts'
import type { ScriptedService } from './service.ts'
import type { Opened } from './storage.ts'
import type { Recorder } from './recorder.ts'

/** The script of one handler call. */
export interface HandlerScript {
  /** The duration in ms; undefined is synchronous. */
  readonly takes: number | undefined
  /** How many calls fail. */
  readonly failures: number
}

/** The settings of the pipeline. */
export interface Setup {
  readonly webhooks: boolean
  readonly exactlyOnce: boolean
  readonly concurrency: number
  readonly highWaterMark: number
  readonly retries: number
  readonly keyed: boolean
  /** Whether some events are filtered out. */
  readonly filtered: boolean
  readonly hold: number
  readonly pollInterval: number
  /** The delay from a failed subscription to the next one, in ms. */
  readonly pause: number
}

/** What all processes of a simulation share. */
export interface World {
  readonly service: ScriptedService
  readonly scheduler: SchedulerLike
  readonly recorder: Recorder
  readonly setup: Setup
  readonly handlers: () => HandlerScript
  readonly random: () => number
}

/** The messages of scripted failures. */
const SCRIPTED = new Set(['refused', 'the disk is full'])

/** Whether the pipeline filters out the event with this key: some runs, some executions, some statuses. */
export function isFilteredOut({ filtered }: Setup, key: string): boolean {
  return filtered && !key.includes(':gap:') && /[rx]\d*[37]\b|\.\d*[37]$/.test(key)
}

/** One process. Its state is lost at its end, except for its disk. */
export class PipelineProcess {
  readonly #world: World
  readonly #opened: Opened
  readonly #checkpoint: Checkpoint
  readonly #receiver: WebhookReceiver
  readonly #client: ResearchClient
  readonly #stopping = new AbortController()
  readonly #attempts = new Map<ResearchEvent, { left: number; readonly takes: number | undefined }>()
  #subscription: Subscription | undefined
  /** Resolves when the current subscription has ended. */
  #ended = Promise.withResolvers<void>()
  #killed = false

  static async begin(world: World, opened: Opened): Promise<PipelineProcess> {
    return new PipelineProcess(world, opened, await openCheckpoint(opened.store))
  }

  constructor(world: World, opened: Opened, checkpoint: Checkpoint) {
    const { service, scheduler, random } = world
    this.#world = world
    this.#opened = opened
    this.#checkpoint = checkpoint
    const { clock } = service.sender
    this.#receiver = createWebhookReceiver({ secrets: SECRET, inbox: opened.inbox, clock })
    service.sender.receiver = async (request) => (await this.#receiver.handle(request)).status
    this.#client = createClient({
      baseUrl: 'http://127.0.0.1:1',
      apiKey: 'key',
      exchange: service.wire.exchange,
      retries: 1,
      initialDelay: 100,
      maxDelay: 1_000,
      random,
      scheduler,
    })
    this.#client.diagnostics.subscribe((diagnostic) => {
      if (diagnostic.kind === 'duplicate') world.recorder.log(`drops ${keyOf(diagnostic.event)}`)
      else if (diagnostic.kind === 'reconnect') world.recorder.log(`reconnects: ${String(diagnostic.cause)}`)
      else if (diagnostic.kind === 'expansion') world.recorder.refused(diagnostic.event)
      else if (diagnostic.kind === 'retry') world.recorder.log(`tries again: ${String(diagnostic.error)}`)
    })
    this.#subscribe()
  }

  /** The position of a stream, saved or not. */
  position(stream: string): string | undefined {
    return this.#checkpoint.position(stream)
  }

  /** Unsubscribes the pipeline and subscribes it again, in the same process. */
  resubscribe(): void {
    if (this.#stopping.signal.aborted) return
    this.#checkInFlight()
    this.#subscription?.unsubscribe()
    this.#subscribe()
  }

  /** Kills the process. */
  kill(): void {
    this.#checkInFlight()
    this.#killed = true
    this.#world.service.sender.receiver = undefined
    this.#subscription?.unsubscribe()
    this.#opened.kill()
  }

  /** Stops the process gracefully: events in flight are finished. Never resolves if it is killed meanwhile. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#ended.promise
    try {
      await this.#checkpoint.close()
    } catch (error) {
      this.#checkExpected(error)
    }
    if (this.#killed) return new Promise(() => {})
    this.#world.service.sender.receiver = undefined
    this.#receiver.close()
    this.#opened.close()
  }

  #subscribe(): void {
    const { service, scheduler, recorder, setup } = this.#world
    const { concurrency, highWaterMark, retries, hold, pollInterval } = setup
    const checkpoint = this.#checkpoint
    const ended = Promise.withResolvers<void>()
    this.#ended = ended
    recorder.subscribed()
    const watched = this.#client.watch({
      monitors: service.monitors.map(({ id, script: { limit, include_completions } }) => ({
        id,
        limit,
        include_completions,
        pollInterval,
      })),
      taskGroups: service.groups.map(({ id, script: { include_input } }) => ({ id, include_input })),
      ...(setup.webhooks && { webhooks: this.#receiver }),
      checkpoint,
      hold,
    })
    const { exactlyOnce } = this.#opened
    const transactional = setup.exactlyOnce ? exactlyOnce?.((event) => recorder.effected(event)) : undefined
    const handler = (event: ResearchEvent) => this.#handle(event, transactional)
    this.#subscription = watched
      .pipe(
        // A refusal is temporary in this script.
        tap((event) => {
          if (event.type === 'source.failed') throw event.data.error
        }),
        filter((event) => !isFilteredOut(setup, keyOf(event))),
        deliver(handler, {
          concurrency,
          highWaterMark,
          retries,
          initialDelay: 20,
          maxDelay: 50,
          random: this.#world.random,
          scheduler,
          checkpoint,
          signal: this.#stopping.signal,
          // Virtual time may jump while a save takes turns of the event loop.
          drainTimeout: Infinity,
          ...(setup.keyed && { key: ({ source }: ResearchEvent) => source }),
        }),
      )
      .subscribe({
        next: (event) => recorder.emitted(event),
        complete: () => {
          recorder.log('complete')
          if (recorder.inFlight > 0) recorder.report(`complete, with ${recorder.inFlight} events in flight`)
          ended.resolve()
        },
        error: (error: unknown) => {
          recorder.log(`failed with ${String(error)}`)
          this.#checkExpected(error)
          this.#checkInFlight()
          ended.resolve()
          scheduler.schedule(() => this.#retry(ended), setup.pause)
        },
      })
  }

  /** Subscribes again after that subscription has failed. */
  #retry(ended: PromiseWithResolvers<void>): void {
    if (!this.#killed && !this.#stopping.signal.aborted && this.#ended === ended) this.#subscribe()
  }

  #checkExpected(error: unknown): void {
    if (this.#killed) return
    const isExpected =
      error instanceof Error && (SCRIPTED.has(error.message) || error.name === 'PermissionError')
    if (!isExpected) this.#world.recorder.report(`failed with ${String(error)}`)
  }

  #handle(event: ResearchEvent, transactional?: (event: ResearchEvent) => void): Promise<void> | void {
    const { recorder, handlers, scheduler } = this.#world
    recorder.began(event)
    const known = this.#attempts.get(event)
    const { takes, failures } =
      known === undefined ? handlers() : { takes: known.takes, failures: known.left }
    const attempt = { takes, left: failures - 1 }
    this.#attempts.set(event, attempt)
    const work = () => {
      if (failures > 0) throw new Error('refused')
      transactional?.(event)
      recorder.ended(event)
    }
    if (takes === undefined) return work()
    return new Promise((resolve, reject) => {
      scheduler.schedule(() => {
        // A killed process does nothing more.
        if (this.#killed) return
        try {
          resolve(work())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      }, takes)
    })
  }

  #checkInFlight(): void {
    const { recorder, setup } = this.#world
    recorder.log(`in flight ${recorder.inFlight}`)
    if (recorder.inFlight > setup.concurrency) recorder.report(`${recorder.inFlight} events were in flight`)
  }
}
