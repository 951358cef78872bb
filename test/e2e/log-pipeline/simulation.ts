import { setImmediate as nextTurn } from 'node:timers/promises'
import { VirtualTimeScheduler } from 'rxjs'
import { vi } from 'vitest'
import { cycle } from '../pipeline/cycle.ts'
import { END, LAG } from '../pipeline/service-script.ts'
import { ScriptedService } from '../pipeline/service.ts'
import type { ServiceScript } from '../pipeline/service.ts'
import { Consumption } from './consumption.ts'
import type { ConsumerScript } from './consumption.ts'
import { openDisk } from './disk.ts'
import type { Disk, StorageScript } from './disk.ts'
import { LogProcess } from './log-process.ts'
import type { Roles } from './log-process.ts'
import type { WriteScript } from './process-store.ts'
import { OF_LOG, RecordedLog } from './recorded-log.ts'
import { Trace } from './trace.ts'
import type { HandlerScript, Setup, World } from './world.ts'

/** An interruption of a process. Times are in ms. */
export interface Interruption {
  readonly at: number
  /**
   * It is killed, or stopped gracefully; or its claims are lost while it goes on; or it begins its recording and its consumers
   * again; or some of what it records is removed and added again. Or all dead letters are handed out again.
   */
  readonly kind: 'kill' | 'stop' | 'suspend' | 'restart' | 'relist' | 'redeliver'
  /** Which of the processes, modulo their number. */
  readonly process: number
  /** The delay before it is started again. */
  readonly down: number
  /** Whether its writes that are on their way still have their effect. */
  readonly isLanding: boolean
}

/** All random choices. */
export interface Script {
  readonly service: ServiceScript
  readonly setup: Setup
  readonly storage: StorageScript
  readonly consumers: readonly ConsumerScript[]
  readonly interruptions: readonly Interruption[]
  /** For each entry in turn. After the last one, no handler fails, and the durations repeat. */
  readonly handlers: readonly HandlerScript[]
  /** For each write of the stores in turn. After the last one, nothing happens. */
  readonly writes: readonly WriteScript[]
  /** How long the calls of the stores take before and after their effect, in ms, in a cycle. */
  readonly latencies: readonly number[]
  /** Between 0 and 1, in a cycle: the random numbers of the client. */
  readonly randoms: readonly number[]
  /** Turns of the event loop per step of virtual time, in a cycle. */
  readonly turns: readonly number[]
}

/** The delay before a process is started again that was killed at a write, in ms. */
const DOWN = 100
/** The longest time until everything is idle after the end of the script, in ms. */
const IDLE_TIMEOUT = 200_000
/** The most steps; more are an endless loop. */
const MAX_STEPS = 20_000
/** The next step where nothing is scheduled, in ms. */
const HEARTBEAT = 50
/** Turns of the event loop in which all pending work without timers completes. */
const TURNS = 12

/** The result of a simulation. */
export interface Report {
  /** The violated rules; empty for a success. */
  readonly violations: readonly string[]
  /** The log, line by line, with virtual times. */
  readonly lines: readonly string[]
}

/**
 * Simulates the script to its end or to the first violation: a service and the processes of a pipeline in virtual time, with a few
 * turns of the event loop per step, in which promises settle.
 */
export async function simulate(script: Script): Promise<Report> {
  // A consumer saves at intervals, which pass with the virtual time.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
  const simulation = new Simulation(script)
  try {
    await simulation.run()
  } catch (error) {
    if (!(error instanceof RuleViolated)) throw error
  } finally {
    await passing(simulation.dispose())
    vi.useRealTimers()
  }
  return simulation.report
}

async function pass(turns: number): Promise<void> {
  for (let left = turns; left > 0; left--) await nextTurn()
}

/** Waits for a store that takes real time. What it does at intervals goes on meanwhile. */
async function passing(work: Promise<void>): Promise<void> {
  const progress = { isOver: false }
  const end = () => {
    progress.isOver = true
  }
  work.then(end, end)
  while (!progress.isOver) {
    await nextTurn()
    vi.advanceTimersByTime(1)
  }
  return work
}

/** A rule was violated, so the simulation ends. */
class RuleViolated extends Error {}

/** A place for one process after the other. */
interface Slot {
  readonly roles: Roles
  /** Undefined while it is down. */
  running: LogProcess | undefined
}

class Simulation {
  readonly #script: Script
  readonly #scheduler = new VirtualTimeScheduler()
  readonly #trace = new Trace(() => this.#scheduler.now())
  readonly #service: ScriptedService
  readonly #disk: Disk
  readonly #world: World
  readonly #slots: readonly Slot[]
  /** Those whose claims were lost. */
  readonly #suspended: LogProcess[] = []
  readonly #turns: () => number
  readonly #latency: () => number
  readonly #writes: Iterator<WriteScript>
  #steps = 0
  /** No more faults. */
  #isFaultless = false

  constructor(script: Script) {
    this.#script = script
    const { storage } = script
    // What several partitions have deleted is no beginning of the log.
    const isOneSequence = storage.kind === 'sqlite' || storage.partitions === 1
    const setup = { ...script.setup, ...(!isOneSequence && { retention: undefined }) }
    const scheduler = this.#scheduler
    this.#service = new ScriptedService(script.service, scheduler)
    this.#disk = openDisk(storage, this.#service.sender.clock)
    const recorded = new RecordedLog(this.#disk.root, this.#service, this.#trace, {
      isOneSequence,
      deletes: setup.retention !== undefined,
    })
    const handlers = script.handlers.values()
    const times = cycle(script.handlers, { takes: undefined, failures: 0 })
    this.#world = {
      service: this.#service,
      scheduler,
      setup,
      trace: this.#trace,
      recorded,
      consumptions: script.consumers.map(
        (consumer, n) => new Consumption(`c${n}`, consumer, recorded, this.#trace, () => scheduler.now()),
      ),
      handlers: () => (this.#isFaultless ? undefined : handlers.next().value) ?? { ...times(), failures: 0 },
      random: cycle(script.randoms, 0.5),
    }
    this.#turns = cycle(script.turns, 3)
    this.#latency = cycle(script.latencies, 0)
    this.#writes = script.writes.values()
    const roles = setup.isApart
      ? [
          { records: true, consumes: false, receives: false },
          { records: false, consumes: true, receives: true },
        ]
      : [{ records: true, consumes: true, receives: true }]
    if (setup.hasStandby) roles.push({ records: true, consumes: false, receives: false })
    this.#slots = roles.map((each) => ({ roles: each, running: undefined }))
    this.#service.sender.onForged = (forgery) => this.#trace.report(`accepted a forged webhook: ${forgery}`)
    recorded.onSourceFailed = () => {
      scheduler.schedule(() => {
        for (const { running } of this.#slots) running?.recordAgain()
      }, setup.pause)
    }
    for (const interruption of script.interruptions)
      scheduler.schedule(() => this.#interrupt(interruption), interruption.at)
  }

  get report(): Report {
    return this.#trace
  }

  async run(): Promise<void> {
    for (const slot of this.#slots) this.#begin(slot)
    await this.#until(() => this.#scheduler.now() > END + LAG)
    this.#isFaultless = true
    this.#service.wire.clearFaults()
    for (const process of this.#suspended) process.kill(false)
    const late = this.#scheduler.now() + IDLE_TIMEOUT
    await this.#until(() => {
      if (this.#isIdle || this.#scheduler.now() > late) return true
      this.#redeliver()
      return false
    })
    this.#reportAll(this.#missing)
    await this.#waitForReads()
    await this.#end()
    // A group that was done is read again as a whole where its cursors have become invalid since.
    const { groups, monitors } = this.#script.service
    if ([...groups, ...monitors].some(({ forgets }) => forgets.length > 0)) return
    this.#reportAll(this.#missing)
    // One more process in each slot, with nothing to do.
    const { recorded } = this.#world
    const { length } = recorded.entries
    for (const slot of this.#slots) this.#begin(slot)
    await this.#waitForReads()
    await this.#end()
    const added = recorded.entries.slice(length).filter(({ type }) => !OF_LOG.has(type))
    this.#reportAll(added.map(({ id }) => `recorded at the end: ${id}`))
    this.#reportAll(this.#missing)
  }

  async dispose(): Promise<void> {
    for (const process of this.#processes) process.kill(false)
    await this.#disk.dispose()
  }

  get #processes(): readonly LogProcess[] {
    return [...this.#suspended, ...this.#slots.flatMap(({ running }) => running ?? [])]
  }

  get #missing(): string[] {
    const { recorded, consumptions } = this.#world
    return [
      ...recorded.missing(),
      ...recorded.behind(),
      ...consumptions.flatMap((consumption) => consumption.missing()),
    ]
  }

  get #isIdle(): boolean {
    return (
      this.#service.sender.idle &&
      this.#slots.every(({ running }) => running !== undefined) &&
      this.#missing.length === 0
    )
  }

  #reportAll(violations: readonly string[]): void {
    for (const violation of violations) this.#trace.report(violation)
    if (violations.length > 0) throw new RuleViolated()
  }

  #begin(slot: Slot): void {
    this.#trace.log(`a process ${this.#slots.indexOf(slot)} starts`)
    const process = new LogProcess(this.#world, slot.roles, this.#disk.open(), {
      latency: async () => {
        // A store that takes real time does not wait for virtual time.
        const takes = this.#script.storage.kind === 'sqlite' ? 0 : this.#latency()
        if (takes > 0) await new Promise<void>((resolve) => this.#scheduler.schedule(() => resolve(), takes))
      },
      write: (write) => {
        const script = this.#isFaultless ? undefined : this.#writes.next().value
        // A process keeps a claim whose answer or release has failed. Until its end, one that waits for it waits in vain.
        const isKept = script?.does === 'fail' && (write === 'claim' || write === 'release')
        if (isKept && this.#script.setup.hasStandby) return { does: 'work', step: 'before' }
        return script ?? { does: 'work', step: 'before' }
      },
      onKill: () => this.#kill(slot, process, { down: DOWN, isLanding: false }),
    })
    slot.running = process
  }

  /** Stops the processes gracefully; waits for those that are down. */
  async #end(): Promise<void> {
    for (const slot of this.#slots) {
      await this.#until(() => slot.running !== undefined)
      this.#stop(slot, () => {})
      await this.#until(() => slot.running === undefined)
    }
  }

  #interrupt(interruption: Interruption): void {
    const { kind, process, down } = interruption
    const slot = this.#slots[process % this.#slots.length]
    if (slot?.running === undefined) return
    const { running } = slot
    this.#trace.log(`${kind} of process ${this.#slots.indexOf(slot)}`)
    switch (kind) {
      case 'kill':
        return this.#kill(slot, running, interruption)
      case 'stop':
        return this.#stop(slot, () => this.#beginLater(slot, down))
      case 'restart':
        return running.restart()
      case 'relist':
        return running.relist(down)
      case 'redeliver':
        return this.#redeliver()
      default: {
        // A file's locks cannot be lost while the process goes on.
        if (this.#script.storage.kind === 'sqlite') return this.#kill(slot, running, interruption)
        running.suspend()
        this.#suspended.push(running)
        slot.running = undefined
        return this.#beginLater(slot, down)
      }
    }
  }

  #redeliver(): void {
    for (const consumption of this.#world.consumptions) void consumption.redeliver(this.#disk.root)
  }

  #kill(
    slot: Slot,
    process: LogProcess,
    { down, isLanding }: Pick<Interruption, 'down' | 'isLanding'>,
  ): void {
    this.#trace.log(`process ${this.#slots.indexOf(slot)} is killed`)
    process.kill(isLanding)
    // A suspended one has a successor.
    if (slot.running !== process) return
    slot.running = undefined
    this.#beginLater(slot, down)
  }

  #beginLater(slot: Slot, delay: number): void {
    // Never at once: a dead process closes its file first, which takes real time.
    this.#scheduler.schedule(() => {
      if (this.#disk.isSettled) this.#begin(slot)
      else this.#beginLater(slot, 0)
    }, delay + 1)
  }

  #stop(slot: Slot, onStopped: () => void): void {
    const { running } = slot
    void running?.stop().then(() => {
      if (slot.running !== running) return
      this.#trace.log(`process ${this.#slots.indexOf(slot)} has stopped`)
      slot.running = undefined
      onStopped()
    })
  }

  /** Waits until every stream and list has been read again. */
  async #waitForReads(): Promise<void> {
    const until = this.#scheduler.now() + 3 * this.#script.setup.pollInterval
    await this.#until(() => this.#scheduler.now() >= until)
  }

  /** Advances the time, from one scheduled action to the next. */
  async #until(isOver: () => boolean): Promise<void> {
    const scheduler = this.#scheduler
    for (;;) {
      await pass(this.#isFaultless ? TURNS : 1 + this.#turns())
      await this.#world.recorded.read()
      for (const consumption of this.#world.consumptions) consumption.check()
      if (this.#trace.violations.length > 0) throw new RuleViolated()
      if (isOver()) return
      if (this.#script.storage.kind === 'sqlite') await this.#settled()
      if (scheduler.actions.length === 0) scheduler.schedule(() => {}, HEARTBEAT)
      const next = scheduler.actions[0]?.delay ?? scheduler.now()
      vi.advanceTimersByTime(next - scheduler.now())
      scheduler.maxFrames = next
      scheduler.flush()
      if (++this.#steps > MAX_STEPS) this.#trace.report(`not idle after ${MAX_STEPS} steps`)
    }
  }

  /** Waits for the calls to a store that takes real time. */
  async #settled(): Promise<void> {
    await passing(
      (async () => {
        while (this.#processes.some(({ isBusy }) => isBusy)) await nextTurn()
        await this.#disk.settled()
      })(),
    )
  }
}
