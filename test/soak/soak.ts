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

/** Settings of {@link soak}. */
export interface SoakOptions {
  readonly events: number
  readonly kills: number
  readonly seed: number
  /** Whether the pipeline reports events as handled too early, which a soak must detect. Default false. */
  readonly careless?: boolean
  /** How long to wait without progress after the last step, until missing events count as lost; in ms. Default 20,000. */
  readonly patience?: number
  /** Called with a readable line for each step. */
  readonly onStep?: (text: string) => void
}

/** The result of a soak. */
export interface SoakResult extends Audit {
  /** Number of kills of the pipeline. */
  readonly kills: number
  /** How often each form of fault struck, 0 for a planned one that did not; `restart` is one of the service. */
  readonly faults: Readonly<Record<string, number>>
  readonly max_rss_mb: number
  readonly seconds: number
  /** Number of kills after which the checkpoint was ahead of the effects. */
  readonly checkpoint_ahead: number
  /** Number of exits of the pipeline with an error for its supervisor, such as a deleted group. */
  readonly failures: number
  readonly concurrency: number
}

const CONCURRENCY = 8
/** How many more runs may end than are handled, so that events are always pending. */
const AHEAD = 100
const PATIENCE = 20_000

/** Runs a pipeline over `events` events, with kills and faults, and audits the result. */
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

      // The service runs in this process, so counting slows it down.
      await after(300)
      const facts = factsOf(research.service.records())
      const effects = effectsIn(state)
      const isComplete = facts.size >= events && [...facts].every((fact) => effects.has(fact))
      if (isComplete && research.isThrough) break
      const reached = JSON.stringify([facts.size, effects.size, research.struck])
      if (reached !== stage) moved = performance.now()
      stage = reached
      // Lost events never arrive.
      if (performance.now() - moved > patience) break
    }

    const faults = { ...research.struck, restart: restarts }
    research.service.faults.clear()
    const exitCode = await pipeline.stop()
    if (exitCode !== 0) throw new Error(`the pipeline ended with ${exitCode} when it was stopped`)
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

/** A free port. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
