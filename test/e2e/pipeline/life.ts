import { filter, tap } from 'rxjs'
import type { SchedulerLike, Subscription } from 'rxjs'
import { createClient, openCheckpoint } from 'rivulet'
import type { Checkpoint, ResearchClient, ResearchEvent } from 'rivulet'
import { deliver } from 'rivulet/operators'
import { createWebhookReceiver } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import { keyOf } from './ledger.ts'
import { SECRET } from './postman.ts'
import type { ScriptedService } from './service.ts'
import type { Opened } from './storage.ts'
import type { Witness } from './witness.ts'

/** How one event is handled. */
export interface HandlerScript {
  /** In ms; undefined is done within the call. */
  readonly takes: number | undefined
  /** How many calls fail. */
  readonly failures: number
}

/** How the pipeline is set up. */
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
  /** From the end of a subscription that failed to the next one, in ms. */
  readonly pause: number
}

/** What every life of a play shares. */
export interface World {
  readonly service: ScriptedService
  readonly scheduler: SchedulerLike
  readonly witness: Witness
  readonly setup: Setup
  readonly handlers: () => HandlerScript
  readonly random: () => number
}

/** What a handler or a store fails with on purpose. */
const ON_PURPOSE = new Set(['refused', 'the disk is full'])

/** Whether the pipeline filters out what has this key: some runs, some executions, some statuses. */
export function isFilteredOut({ filtered }: Setup, key: string): boolean {
  return filtered && !key.includes(':gap:') && /[rx]\d*[37]\b|\.\d*[37]$/.test(key)
}

/** One process: all that it has goes with it, but for what is on its disk. */
export class Life {
  readonly #world: World
  readonly #opened: Opened
  readonly #checkpoint: Checkpoint
  readonly #receiver: WebhookReceiver
  readonly #client: ResearchClient
  readonly #stopping = new AbortController()
  readonly #attempts = new Map<ResearchEvent, { left: number; readonly takes: number | undefined }>()
  #subscription: Subscription | undefined
  /** Resolves when the present subscription has ended by itself. */
  #ended = Promise.withResolvers<void>()
  #killed = false

  static async begin(world: World, opened: Opened): Promise<Life> {
    return new Life(world, opened, await openCheckpoint(opened.store))
  }

  constructor(world: World, opened: Opened, checkpoint: Checkpoint) {
    const { service, scheduler, random } = world
    this.#world = world
    this.#opened = opened
    this.#checkpoint = checkpoint
    const { clock } = service.postman
    this.#receiver = createWebhookReceiver({ secrets: SECRET, inbox: opened.inbox, clock })
    service.postman.mailbox = async (request) => (await this.#receiver.handle(request)).status
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
      if (diagnostic.kind === 'duplicate') world.witness.tell(`drops ${keyOf(diagnostic.event)}`)
      else if (diagnostic.kind === 'reconnect') world.witness.tell(`reconnects: ${String(diagnostic.cause)}`)
      else if (diagnostic.kind === 'expansion') world.witness.refused(diagnostic.event)
      else if (diagnostic.kind === 'retry') world.witness.tell(`tries again: ${String(diagnostic.error)}`)
    })
    this.#subscribe()
  }

  /** Where a stream stands, saved or not. */
  position(stream: string): string | undefined {
    return this.#checkpoint.position(stream)
  }

  /** The pipeline is given up and begun anew, in the same process. */
  resubscribe(): void {
    if (this.#stopping.signal.aborted) return
    this.#checkInFlight()
    this.#subscription?.unsubscribe()
    this.#subscribe()
  }

  /** The process is gone. */
  kill(): void {
    this.#checkInFlight()
    this.#killed = true
    this.#world.service.postman.mailbox = undefined
    this.#subscription?.unsubscribe()
    this.#opened.kill()
  }

  /** The process ends in good order: what was begun is finished. Never resolves if it is killed meanwhile. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#ended.promise
    try {
      await this.#checkpoint.close()
    } catch (error) {
      this.#checkForeseen(error)
    }
    if (this.#killed) return new Promise(() => {})
    this.#world.service.postman.mailbox = undefined
    this.#receiver.close()
    this.#opened.close()
  }

  #subscribe(): void {
    const { service, scheduler, witness, setup } = this.#world
    const { concurrency, highWaterMark, retries, hold, pollInterval } = setup
    const checkpoint = this.#checkpoint
    const ended = Promise.withResolvers<void>()
    this.#ended = ended
    witness.subscribed()
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
    const transactional = setup.exactlyOnce ? exactlyOnce?.((event) => witness.took(event)) : undefined
    const handler = (event: ResearchEvent) => this.#handle(event, transactional)
    this.#subscription = watched
      .pipe(
        // A refusal stands for one that passes, as the wire has it.
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
          // Virtual time may fly while a save takes its turns.
          drainTimeout: Infinity,
          ...(setup.keyed && { key: ({ source }: ResearchEvent) => source }),
        }),
      )
      .subscribe({
        next: (event) => witness.emitted(event),
        complete: () => {
          witness.tell('complete')
          if (witness.inFlight > 0) witness.note(`complete, with ${witness.inFlight} events in flight`)
          ended.resolve()
        },
        error: (error: unknown) => {
          witness.tell(`failed with ${String(error)}`)
          this.#checkForeseen(error)
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

  #checkForeseen(error: unknown): void {
    if (this.#killed) return
    const isForeseen =
      error instanceof Error && (ON_PURPOSE.has(error.message) || error.name === 'PermissionError')
    if (!isForeseen) this.#world.witness.note(`failed with ${String(error)}`)
  }

  #handle(event: ResearchEvent, transactional?: (event: ResearchEvent) => void): Promise<void> | void {
    const { witness, handlers, scheduler } = this.#world
    witness.began(event)
    const known = this.#attempts.get(event)
    const { takes, failures } =
      known === undefined ? handlers() : { takes: known.takes, failures: known.left }
    const attempt = { takes, left: failures - 1 }
    this.#attempts.set(event, attempt)
    const work = () => {
      if (failures > 0) throw new Error('refused')
      transactional?.(event)
      witness.ended(event)
    }
    if (takes === undefined) return work()
    return new Promise((resolve, reject) => {
      scheduler.schedule(() => {
        // A process that is gone does nothing more.
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
    const { witness, setup } = this.#world
    witness.tell(`in flight ${witness.inFlight}`)
    if (witness.inFlight > setup.concurrency) witness.note(`${witness.inFlight} events were in flight`)
  }
}
