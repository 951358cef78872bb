import { createClient } from 'rivulet'
import { ConsumerError, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { createWebhookReceiver } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import type { Commit, StreamAppend } from '../../../src/log/store/contract.ts'
import { keyOf } from '../pipeline/expected-events.ts'
import { SECRET } from '../pipeline/webhook-sender.ts'
import type { Receiver } from '../pipeline/webhook-sender.ts'
import type { Consumption } from './consumption.ts'
import type { OpenDisk } from './disk.ts'
import { DISK_FULL, isFence, ProcessStore } from './process-store.ts'
import type { StoreConditions } from './process-store.ts'
import { RunningConsumer } from './running-consumer.ts'
import { RunningRecording } from './running-recording.ts'
import type { Host, World } from './world.ts'

/** What a process does. */
export interface Roles {
  readonly records: boolean
  readonly consumes: boolean
  /** Whether it receives webhooks. Another one may record them. */
  readonly receives: boolean
}

/** The messages of scripted failures. */
const SCRIPTED = new Set(['refused', DISK_FULL])

/** The errors of a process whose claims were taken over. */
const TAKEN_OVER = new Set(['FencedError', 'LogConflictError', 'LogInUseError'])

/** One process. Its state is lost at its end, except for its disk. */
export class LogProcess implements Host {
  readonly world: World
  isEnding = false
  isKilled = false
  readonly #roles: Roles
  readonly #disk: OpenDisk
  readonly #calls: ProcessStore
  readonly #opening: Promise<EventLog>
  #recording: RunningRecording | undefined
  readonly #consumers: RunningConsumer[] = []
  #receiver: Receiver | undefined
  /** Resolves when it is killed. */
  readonly #killed = Promise.withResolvers<undefined>()
  /** Whether others believe that it is dead. */
  #isSuspended = false

  constructor(
    world: World,
    roles: Roles,
    disk: OpenDisk,
    conditions: Pick<StoreConditions, 'latency' | 'write' | 'onKill'>,
  ) {
    this.world = world
    this.#roles = roles
    this.#disk = disk
    this.#calls = new ProcessStore(disk.store, {
      ...conditions,
      onEffect: (write, args) => this.#onEffect(write, args),
      onFailure: (write, [fence]) => {
        world.trace.log(`${write} ${isFence(fence) ? fence.name : ''} fails`)
        if (isFence(fence)) this.#consumptionOf(fence.name)?.failed()
      },
    })
    const { retention } = world.setup
    this.#opening = openLog(this.#calls.store, { ...(retention !== undefined && { retention }) })
    void this.#opening.then((log) => this.#begin(log))
  }

  /** Whether a call to its store is under way. */
  get isBusy(): boolean {
    return this.#calls.isBusy
  }

  isCommitting(reader: string): boolean {
    return this.#calls.isCommitting(reader)
  }

  failed(error: unknown): void {
    if (this.isKilled) return
    this.world.trace.log(`failed with ${String(error)}`)
    const reason = error instanceof ConsumerError ? error.cause : error
    const isExpected =
      reason instanceof Error &&
      (SCRIPTED.has(reason.message) || (this.#isSuspended && TAKEN_OVER.has(reason.name)))
    if (!isExpected) this.world.trace.report(`failed with ${String(error)}`)
  }

  /** @param isLanding Whether the writes that are on their way still have their effect. */
  kill(isLanding: boolean): void {
    this.isKilled = this.isEnding = true
    this.#killed.resolve(undefined)
    this.#receiveNoMore()
    this.#calls.kill(isLanding)
    this.#disk.loseClaims()
    this.#recording?.kill()
    for (const consumer of this.#consumers) consumer.kill()
  }

  /** Its claims are lost, and it goes on: as a process that was suspended for too long. */
  suspend(): void {
    this.#isSuspended = this.isEnding = true
    this.#calls.suspend()
    this.#disk.loseClaims()
  }

  /** Stops it gracefully. Never resolves if it is killed meanwhile. */
  async stop(): Promise<void> {
    this.isEnding = true
    this.#receiveNoMore()
    const log = await this.#opening
    await Promise.all(this.#consumers.map((consumer) => consumer.stop()))
    try {
      await log.close()
      for (const consumer of this.#consumers) consumer.stopped()
    } catch (error) {
      this.failed(error)
    }
  }

  /** Ends its recording and its consumers, and begins them again. */
  restart(): void {
    if (this.isEnding) return
    void this.#recording?.again()
    for (const consumer of this.#consumers) consumer.restart()
  }

  /** Records again, after a source has failed. */
  recordAgain(): void {
    if (!this.isEnding) void this.#recording?.again()
  }

  /** Removes some of what it records, and adds it again after this many ms. */
  relist(down: number): void {
    if (!this.isEnding) this.#recording?.relist(down)
  }

  #begin(log: EventLog): void {
    if (this.isEnding) return
    const { service, scheduler, random, consumptions, recorded } = this.world
    const receiver = this.#roles.receives ? this.#receive(log) : undefined
    if (this.#roles.records) {
      const client = createClient({
        baseUrl: 'http://127.0.0.1:1',
        apiKey: 'key',
        exchange: service.wire.exchange,
        retries: 1,
        initialDelay: 100,
        maxDelay: 1_000,
        random,
        scheduler,
      })
      client.diagnostics.subscribe((diagnostic) => {
        if (diagnostic.kind === 'expansion') recorded.notExpanded(keyOf(diagnostic.event))
      })
      this.#recording = new RunningRecording(this, client, log, receiver)
    }
    if (!this.#roles.consumes) return
    for (const consumption of consumptions) {
      const begin = () => {
        if (!this.isEnding) this.#consumers.push(new RunningConsumer(this, consumption, log))
      }
      const delay = consumption.script.from - scheduler.now()
      if (delay <= 0) begin()
      else scheduler.schedule(begin, delay)
    }
  }

  #receive(log: EventLog): WebhookReceiver {
    const { sender } = this.world.service
    const receiver = createWebhookReceiver({ secrets: SECRET, inbox: log.inbox, clock: sender.clock })
    this.#receiver = async (request) => {
      const response = await Promise.race([receiver.handle(request), this.#killed.promise])
      return response?.status
    }
    sender.receiver = this.#receiver
    return receiver
  }

  #receiveNoMore(): void {
    const { sender } = this.world.service
    // One that was suspended has a successor.
    if (sender.receiver === this.#receiver) sender.receiver = undefined
  }

  #onEffect(write: string, [first, second]: readonly unknown[]): void {
    const { recorded, trace } = this.world
    if (write === 'append' && isAppends(first)) recorded.appended(first)
    if (!isFence(first)) return
    trace.log(`${write} ${first.name}`)
    if (write === 'commit' && isCommit(second)) this.#consumptionOf(first.name)?.committed(second)
  }

  #consumptionOf(reader: string): Consumption | undefined {
    return this.world.consumptions.find(({ name }) => reader === `consumer:${name}`)
  }
}

function isAppends(value: unknown): value is readonly StreamAppend[] {
  return Array.isArray(value) && value.every((each) => isFence(each.fence))
}

function isCommit(value: unknown): value is Commit {
  return typeof value === 'object' && value !== null && 'cursor' in value && 'acknowledged' in value
}
