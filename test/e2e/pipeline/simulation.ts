import { setImmediate as nextTurn } from 'node:timers/promises'
import { VirtualTimeScheduler } from 'rxjs'
import { Audit } from './audit.ts'
import { cycle } from './cycle.ts'
import { PipelineProcess } from './pipeline-process.ts'
import type { HandlerScript, Setup, World } from './pipeline-process.ts'
import { END, LAG } from './service-script.ts'
import { ScriptedService } from './service.ts'
import type { ServiceScript } from './service.ts'
import { memoryDisk, sqliteDisk } from './storage.ts'
import type { Disk, SaveScript } from './storage.ts'
import { Recorder } from './recorder.ts'

/** An interruption of the process. Times are in ms. */
export interface Interruption {
  readonly at: number
  /** It is killed, or stopped gracefully, or only resubscribes its pipeline. */
  readonly kind: 'kill' | 'stop' | 'resubscribe'
  /** The delay before the process is started again. */
  readonly down: number
}

/** All random choices. */
export interface Script {
  readonly service: ServiceScript
  readonly setup: Setup
  readonly storage: 'memory' | 'sqlite'
  readonly interruptions: readonly Interruption[]
  /** For each event in turn. After the last one, no handler fails, and the durations repeat. */
  readonly handlers: readonly HandlerScript[]
  /** For each save in turn; after the last one, each is synchronous. */
  readonly saves: readonly SaveScript[]
  /** From 0 to 1, in a cycle: the random numbers of the client. */
  readonly randoms: readonly number[]
  /** Turns of the event loop per step of virtual time, in a cycle. */
  readonly turns: readonly number[]
}

/** The longest time until everything is idle after that, in ms. */
const IDLE_TIMEOUT = 200_000

/** The most steps; more are an endless loop. */
const MAX_STEPS = 20_000
/** Turns of the event loop in which all pending work without timers completes. */
const TURNS = 12

/** The result of a simulation. */
export interface Report {
  /** The violated rules; empty for a success. */
  readonly violations: readonly string[]
  /** The log, line by line, with virtual times. */
  readonly trace: readonly string[]
}

/**
 * Simulates the script to its end or to the first violation: a service and a pipeline in virtual time, with a few turns of the event
 * loop per step, in which promises settle.
 */
export async function simulate(script: Script): Promise<Report> {
  const simulation = new Simulation(script)
  try {
    await simulation.run()
  } catch (error) {
    if (!(error instanceof RuleViolated)) throw error
  } finally {
    simulation.dispose()
  }
  return simulation.report
}

async function pass(turns: number): Promise<void> {
  for (let left = turns; left > 0; left--) await nextTurn()
}

/** A rule was violated, so the simulation ends. */
class RuleViolated extends Error {}

class Simulation {
  readonly #script: Script
  readonly #scheduler = new VirtualTimeScheduler()
  readonly #service: ScriptedService
  readonly #recorder: Recorder
  readonly #world: World
  readonly #disk: Disk
  readonly #turns: () => number
  readonly #audit: Audit
  #steps = 0
  /** No more faults. */
  #faultless = false
  #running: PipelineProcess | undefined
  #starting: Promise<void> | undefined

  constructor(script: Script) {
    this.#script = script
    const scheduler = this.#scheduler
    this.#service = new ScriptedService(script.service, scheduler)
    this.#recorder = new Recorder(this.#service, script.setup.keyed, () => scheduler.now())
    const handlers = script.handlers.values()
    const times = cycle(script.handlers, { takes: undefined, failures: 0 })
    const saves = script.saves.values()
    this.#world = {
      service: this.#service,
      scheduler,
      recorder: this.#recorder,
      setup: script.setup,
      handlers: () => handlers.next().value ?? { ...times(), failures: 0 },
      random: cycle(script.randoms, 0.5),
    }
    const disk = script.storage === 'sqlite' ? sqliteDisk : memoryDisk
    this.#disk = disk(scheduler, () => {
      const save = saves.next().value ?? { takes: 0, early: false, fails: false }
      return this.#faultless ? { ...save, fails: false } : save
    })
    this.#turns = cycle(script.turns, 3)
    this.#audit = new Audit(this.#service, this.#recorder, this.#disk, script.setup)
    for (const interruption of script.interruptions)
      scheduler.schedule(() => this.#interrupt(interruption), interruption.at)
  }

  get report(): Report {
    return this.#recorder
  }

  async run(): Promise<void> {
    await this.#begin()
    await this.#until(() => this.#scheduler.now() > END + LAG)
    this.#faultless = true
    this.#service.wire.clearFaults()
    const late = this.#scheduler.now() + IDLE_TIMEOUT
    await this.#until(() => this.#isIdle || this.#scheduler.now() > late)
    for (const missing of this.#audit.missing()) this.#recorder.report(missing)
    await this.#waitForReads()
    await this.#end()
    for (const leftOver of this.#audit.leftOver()) this.#recorder.report(leftOver)
    // One more process, with nothing to do.
    await this.#begin()
    await this.#waitForReads()
    await this.#end()
  }

  dispose(): void {
    this.#running?.kill()
    this.#disk.dispose()
  }

  async #begin(): Promise<void> {
    this.#recorder.log('a process begins')
    this.#running = await PipelineProcess.begin(this.#world, this.#disk.open())
  }

  /** Stops the process gracefully; waits for one that is down. */
  async #end(): Promise<void> {
    await this.#until(() => this.#running !== undefined)
    const running = this.#running
    this.#stop(() => {})
    await this.#until(() => this.#running !== running)
  }

  #interrupt({ kind, down }: Interruption): void {
    const running = this.#running
    if (running === undefined) return
    this.#recorder.log(kind)
    if (kind === 'resubscribe') return running.resubscribe()
    if (kind === 'stop') return this.#stop(() => this.#restart(down))
    running.kill()
    this.#running = undefined
    this.#restart(down)
  }

  #restart(delay: number): void {
    this.#scheduler.schedule(() => {
      this.#starting = this.#begin()
    }, delay)
  }

  #stop(onStopped: () => void): void {
    const running = this.#running
    void running?.stop().then(() => {
      if (this.#running !== running) return
      this.#recorder.log('stopped')
      this.#running = undefined
      onStopped()
    })
  }

  /** Waits until every stream and list has been read again. */
  async #waitForReads(): Promise<void> {
    const until = this.#scheduler.now() + 3 * this.#script.setup.pollInterval + 2 * this.#script.setup.hold
    await this.#until(() => this.#scheduler.now() >= until)
  }

  get #isIdle(): boolean {
    const running = this.#running
    return running !== undefined && this.#audit.isIdle((stream) => running.position(stream))
  }

  /** Advances the time, from one scheduled action to the next. */
  async #until(isOver: () => boolean): Promise<void> {
    const scheduler = this.#scheduler
    for (;;) {
      await pass(this.#faultless ? TURNS : 1 + this.#turns())
      await this.#starting
      if (this.#recorder.violations.length > 0) throw new RuleViolated()
      if (isOver()) return
      if (scheduler.actions.length === 0) await pass(TURNS)
      const [next] = scheduler.actions
      if (next === undefined) return
      scheduler.maxFrames = next.delay
      scheduler.flush()
      if (++this.#steps > MAX_STEPS) this.#recorder.report(`not idle after ${MAX_STEPS} steps`)
    }
  }
}
