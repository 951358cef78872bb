import { setImmediate as nextTurn } from 'node:timers/promises'
import { VirtualTimeScheduler } from 'rxjs'
import { Audit } from './audit.ts'
import { cycle } from './cycle.ts'
import { Life } from './life.ts'
import type { HandlerScript, Setup, World } from './life.ts'
import { ScriptedService } from './service.ts'
import type { ServiceScript } from './service.ts'
import { memoryDisk, sqliteDisk } from './storage.ts'
import type { Disk, SaveScript } from './storage.ts'
import { Witness } from './witness.ts'

/** Something that happens to the process. Times are in ms. */
export interface Blow {
  readonly at: number
  /** It is gone at once, or it ends in good order, or it gives its pipeline up and begins it anew. */
  readonly kind: 'kill' | 'stop' | 'resubscribe'
  /** How long until the process is started again. */
  readonly down: number
}

/** All that is left to chance. */
export interface Script {
  readonly service: ServiceScript
  readonly setup: Setup
  readonly storage: 'memory' | 'sqlite'
  readonly blows: readonly Blow[]
  /** For each event in turn. Once they are used up, no handler fails, and the times begin anew. */
  readonly handlers: readonly HandlerScript[]
  /** For each save in turn; once they are used up, each is done at once. */
  readonly saves: readonly SaveScript[]
  /** From 0 to 1, over and over: what makes the client's waits differ. */
  readonly randoms: readonly number[]
  /** Turns of the event loop from one step of virtual time to the next, over and over. */
  readonly turns: readonly number[]
}

/** When the last event comes, in ms; the script is over then. */
export const END = 10_000
/** How much later something may be told than it happens, in ms. */
export const LAG = 3_000
/** How long everything may take to come to rest after that, in ms. */
const REST = 200_000

/** Steps that no play takes unless it goes round in a circle. */
const MAX_STEPS = 20_000
/** Turns of the event loop in which everything that does not wait for time comes to rest. */
const TURNS = 12

/** What was seen. */
export interface Report {
  /** What must not be; nothing where all is well. */
  readonly violations: readonly string[]
  /** What happened, line by line, with the virtual time of each. */
  readonly story: readonly string[]
}

/**
 * Plays the script to its end, or to the first violation: a service and a pipeline in virtual time, step by step, with a
 * few turns of the event loop in between, in which promises settle.
 */
export async function play(script: Script): Promise<Report> {
  const playing = new Play(script)
  try {
    await playing.run()
  } catch (error) {
    if (!(error instanceof Violated)) throw error
  } finally {
    playing.dispose()
  }
  return playing.report
}

async function pass(turns: number): Promise<void> {
  for (let left = turns; left > 0; left--) await nextTurn()
}

/** Something was noted that must not be, and the play need not go on. */
class Violated extends Error {}

class Play {
  readonly #script: Script
  readonly #scheduler = new VirtualTimeScheduler()
  readonly #service: ScriptedService
  readonly #witness: Witness
  readonly #world: World
  readonly #disk: Disk
  readonly #turns: () => number
  readonly #audit: Audit
  #steps = 0
  /** Nothing goes wrong any more. */
  #calm = false
  #life: Life | undefined
  #coming: Promise<void> | undefined

  constructor(script: Script) {
    this.#script = script
    const scheduler = this.#scheduler
    this.#service = new ScriptedService(script.service, scheduler)
    this.#witness = new Witness(this.#service, script.setup.keyed, () => scheduler.now())
    const handlers = script.handlers.values()
    const times = cycle(script.handlers, { takes: undefined, failures: 0 })
    const saves = script.saves.values()
    this.#world = {
      service: this.#service,
      scheduler,
      witness: this.#witness,
      setup: script.setup,
      handlers: () => handlers.next().value ?? { ...times(), failures: 0 },
      random: cycle(script.randoms, 0.5),
    }
    const disk = script.storage === 'sqlite' ? sqliteDisk : memoryDisk
    this.#disk = disk(scheduler, () => {
      const save = saves.next().value ?? { takes: 0, early: false, fails: false }
      return this.#calm ? { ...save, fails: false } : save
    })
    this.#turns = cycle(script.turns, 3)
    this.#audit = new Audit(this.#service, this.#witness, this.#disk, script.setup)
    for (const blow of script.blows) scheduler.schedule(() => this.#strike(blow), blow.at)
  }

  get report(): Report {
    return this.#witness
  }

  async run(): Promise<void> {
    await this.#begin()
    await this.#until(() => this.#scheduler.now() > END + LAG)
    this.#calm = true
    this.#service.wire.heal()
    const late = this.#scheduler.now() + REST
    await this.#until(() => this.#isAtRest || this.#scheduler.now() > late)
    for (const missing of this.#audit.missing()) this.#witness.note(missing)
    await this.#linger()
    await this.#end()
    for (const leftOver of this.#audit.leftOver()) this.#witness.note(leftOver)
    // One life more, in which there is nothing to do.
    await this.#begin()
    await this.#linger()
    await this.#end()
  }

  dispose(): void {
    this.#life?.kill()
    this.#disk.dispose()
  }

  async #begin(): Promise<void> {
    this.#witness.tell('a process begins')
    this.#life = await Life.begin(this.#world, this.#disk.open())
  }

  /** Ends the process in good order; waits for one that is down. */
  async #end(): Promise<void> {
    await this.#until(() => this.#life !== undefined)
    const life = this.#life
    this.#stop(() => {})
    await this.#until(() => this.#life !== life)
  }

  #strike({ kind, down }: Blow): void {
    const life = this.#life
    if (life === undefined) return
    this.#witness.tell(kind)
    if (kind === 'resubscribe') return life.resubscribe()
    if (kind === 'stop') return this.#stop(() => this.#restart(down))
    life.kill()
    this.#life = undefined
    this.#restart(down)
  }

  #restart(delay: number): void {
    this.#scheduler.schedule(() => {
      this.#coming = this.#begin()
    }, delay)
  }

  #stop(onStopped: () => void): void {
    const life = this.#life
    void life?.stop().then(() => {
      if (this.#life !== life) return
      this.#witness.tell('stopped')
      this.#life = undefined
      onStopped()
    })
  }

  /** Long enough for every stream and list to be read again. */
  async #linger(): Promise<void> {
    const until = this.#scheduler.now() + 3 * this.#script.setup.pollInterval + 2 * this.#script.setup.hold
    await this.#until(() => this.#scheduler.now() >= until)
  }

  get #isAtRest(): boolean {
    const life = this.#life
    return life !== undefined && this.#audit.isAtRest((stream) => life.position(stream))
  }

  /** Lets time pass, from one thing that happens to the next. */
  async #until(isOver: () => boolean): Promise<void> {
    const scheduler = this.#scheduler
    for (;;) {
      await pass(this.#calm ? TURNS : 1 + this.#turns())
      await this.#coming
      if (this.#witness.violations.length > 0) throw new Violated()
      if (isOver()) return
      if (scheduler.actions.length === 0) await pass(TURNS)
      const [next] = scheduler.actions
      if (next === undefined) return
      scheduler.maxFrames = next.delay
      scheduler.flush()
      if (++this.#steps > MAX_STEPS) this.#witness.note(`no rest after ${MAX_STEPS} steps`)
    }
  }
}
