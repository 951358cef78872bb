import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { auditOf, effectsIn, factsOf, isAheadOf } from './audit.ts'
import type { Audit } from './audit.ts'
import { PipelineProcess } from './pipeline-process.ts'
import { formOf, planOf } from './plan.ts'
import type { Step } from './plan.ts'
import { Research } from './research.ts'
import { Workload } from './workload.ts'

/** How much, how often, and which of all that can happen. */
export interface SoakOptions {
  readonly events: number
  readonly kills: number
  readonly seed: number
  /** Has the pipeline say that it is done with an event before it is, to see whether a soak finds that. Default false. */
  readonly careless?: boolean
  /** How long nothing may move, once the plan is carried out, until what is missing counts as lost; in ms. Default 20,000. */
  readonly patience?: number
  /** Hears what happens, for people. */
  readonly onStep?: (text: string) => void
}

/** The result of a soak. */
export interface SoakResult extends Audit {
  /** Times that the pipeline was killed. */
  readonly kills: number
  /** How often each form of fault struck, 0 for one that was planned and never did; `restart` is one of the service. */
  readonly faults: Readonly<Record<string, number>>
  readonly max_rss_mb: number
  readonly seconds: number
  /** Kills after which the checkpoint was found ahead of what had its effect. */
  readonly checkpoint_ahead: number
  /** Times that the pipeline ended by itself, with an error that is for its supervisor: a deleted group, say. */
  readonly failures: number
  readonly concurrency: number
}

const CONCURRENCY = 8
/** How many more runs may end than were handled: there is always something going on. */
const AHEAD = 100
const PATIENCE = 20_000

/** Lets a pipeline handle `events` events while it is killed and the service fails, and counts what came of it. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { events, kills, seed, careless = false, patience = PATIENCE, onStep = () => {} } = options
  const began = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-soak-'))
  const apiKey = `key_${seed}`
  const webhookSecret = `secret_${seed}`
  const research = new Research({ folder, apiKey, webhookSecret, ahead: AHEAD })
  await research.start()
  const port = await freePort()
  const workload = await Workload.begin(research, { apiKey, events, url: `http://127.0.0.1:${port}/` })

  const { group, monitor } = workload
  const state = join(folder, 'state.db')
  const handled = join(folder, 'handled.txt')
  const place = { baseUrl: research.url, apiKey, webhookSecret, group, monitor, state, handled, port }
  const plan = [...planOf(events, kills, seed)]
  let count = 0
  const onHandled = (total: number) => {
    count = total
    research.handled(count, plan[0]?.at)
  }
  const pipeline = new PipelineProcess({ ...place, concurrency: CONCURRENCY, careless }, onHandled, onStep)
  pipeline.start()

  let restarts = 0
  let ahead = 0
  const happen = async (step: Step): Promise<void> => {
    onStep(`${count} handled: ${step.what === 'fault' ? formOf(step.fault) : step.what}`)
    if (step.what === 'fault') return research.arm(step.fault)
    if (step.what === 'restart') {
      restarts += 1
      return research.restart()
    }
    await pipeline.kill(() => {
      if (isAheadOf(state, group)) ahead += 1
    })
  }

  try {
    const deadline = performance.now() + PATIENCE + events * 10
    let stage = ''
    let moved = 0
    while (performance.now() < deadline) {
      await workload.goOn(plan.length === 0 ? events : count)
      for (let step = plan[0]; step !== undefined && step.at <= count; step = plan[0]) {
        plan.shift()
        research.handled(count, plan[0]?.at)
        await happen(step)
      }
      await after(20)
      if (plan.length > 0 || !workload.isComplete) continue

      // The service lives in this process, and counting takes its time from it.
      await after(300)
      const facts = factsOf(research.service.records())
      const effects = effectsIn(state)
      const isComplete = facts.size >= events && [...facts].every((fact) => effects.has(fact))
      if (isComplete && research.isThrough) break
      const reached = JSON.stringify([facts.size, effects.size, research.struck])
      if (reached !== stage) moved = performance.now()
      stage = reached
      // What was lost never comes.
      if (performance.now() - moved > patience) break
    }

    const faults = { ...research.struck, restart: restarts }
    research.service.faults.clear()
    const exitCode = await pipeline.stop()
    if (exitCode !== 0) throw new Error(`the pipeline ended with ${exitCode} when it was asked to stop`)
    const { lost, doubled_effects, redelivered, ...made } = auditOf(
      research.service.records(),
      state,
      handled,
    )
    return {
      ...made,
      kills: pipeline.kills,
      faults,
      lost,
      doubled_effects,
      redelivered,
      max_rss_mb: Math.round(pipeline.maxRssMb),
      seconds: Math.round((performance.now() - began) / 100) / 10,
      checkpoint_ahead: ahead,
      failures: pipeline.failures,
      concurrency: CONCURRENCY,
    }
  } finally {
    await pipeline.stop().catch(() => null)
    await research.service.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** A port that nobody listens on right now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
