import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { auditOf, effectsIn, factsOf, isAheadOf } from './audit.ts'
import type { Audit } from './audit.ts'
import { PipelineProcess } from './pipeline-process.ts'
import { planOf } from './plan.ts'
import { Research } from './research.ts'

/** How much, how often, and which of all that can happen. */
export interface SoakOptions {
  readonly events: number
  readonly kills: number
  readonly seed: number
  /** Hears what happens, for people. */
  readonly onStep?: (text: string) => void
}

/** The result of a soak. */
export interface SoakResult extends Audit {
  readonly kills: number
  /** How often each kind of fault was switched on; `restart` is one of the service. */
  readonly faults: Readonly<Record<string, number>>
  /** Kills after which the checkpoint was found ahead of what had its effect. */
  readonly checkpoint_ahead: number
  /** Times that the pipeline ended by itself, with an error that is for its supervisor: a deleted group, say. */
  readonly failures: number
  readonly concurrency: number
  readonly max_rss_mb: number
  readonly seconds: number
}

const CONCURRENCY = 8
/** Of 20 events, one is the monitor's. */
const MONITOR_SHARE = 20
/** Of 10 runs, one posts a webhook as well. */
const WEBHOOK_SHARE = 10

/** Lets a pipeline handle `events` events while it is killed and the service fails, and counts what came of it. */
export async function soak({ events, kills, seed, onStep = () => {} }: SoakOptions): Promise<SoakResult> {
  const began = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-soak-'))
  const apiKey = `key_${seed}`
  const webhookSecret = `secret_${seed}`
  const research = new Research({ folder, apiKey, webhookSecret, ahead: 100 })
  await research.start()

  const port = await freePort()
  const webhook = (event_types: string[]) => ({ url: `http://127.0.0.1:${port}/`, event_types })
  const client = createClient({ baseUrl: research.url, apiKey, initialDelay: 20, maxDelay: 500 })
  const { taskgroup_id: group } = await firstValueFrom(client.taskGroups.create())
  const { monitor_id: monitor } = await firstValueFrom(
    client.monitors.create({
      type: 'event_stream',
      frequency: '30d',
      // It looks at more matches than there are notes.
      processor: 'core',
      settings: { query: 'spring tide' },
      webhook: webhook(['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed']),
    }),
  )
  const notes = Math.floor(events / MONITOR_SHARE)
  const inputs = Array.from({ length: events - notes }, (_, number) => ({
    input: `question ${number}`,
    processor: 'base',
    ...(number % WEBHOOK_SHARE === 0 && { webhook: webhook(['task_run.status']) }),
  }))
  await lastValueFrom(client.taskGroups.addRuns(group, { inputs }))

  const state = join(folder, 'state.db')
  const handled = join(folder, 'handled.txt')
  const plan = [...planOf(events, kills, seed)]
  let count = 0
  // Nothing runs ahead of what is to happen next, so that it happens while there is something to lose.
  // What a killed process had handled and not yet reported is not counted, so at the end all may be made.
  const goOn = () => research.handled(plan.length === 0 ? Infinity : count, plan[0]?.at ?? Infinity)
  const settings = { baseUrl: research.url, apiKey, webhookSecret, group, monitor, state, handled, port }
  const onHandled = (total: number) => {
    count = total
    goOn()
  }
  const pipeline = new PipelineProcess({ ...settings, concurrency: CONCURRENCY }, onHandled, onStep)
  pipeline.start()

  const faults: Record<string, number> = {}
  let noted = 0
  let ahead = 0
  const deadline = performance.now() + 20_000 + events * 10
  const audit = () => auditOf(research.service.records(), state, handled)
  try {
    for (;;) {
      // What was lost never comes: then it is time to count it.
      if (performance.now() > deadline) break
      const due = plan.length === 0 ? notes : Math.min(notes, (count / events) * notes + 5)
      while (noted < due) {
        await research.note()
        noted += 1
        if (noted % 5 === 0 || noted === notes)
          await retried(() => firstValueFrom(client.monitors.trigger(monitor)))
      }
      for (let step = plan[0]; step !== undefined && step.at <= count; step = plan[0]) {
        plan.shift()
        goOn()
        const name = step.what === 'fault' ? step.fault.kind : step.what
        onStep(`${count} handled: ${name}`)
        if (step.what === 'kill') {
          await pipeline.kill(() => {
            if (isAheadOf(state, group)) ahead += 1
          })
        }
        if (step.what === 'restart') await research.restart()
        if (step.what === 'fault') research.service.faults.add(step.fault)
        if (step.what !== 'kill') faults[name] = (faults[name] ?? 0) + 1
      }
      if (plan.length === 0 && noted === notes) {
        // The service lives in this process, and counting takes its time from it.
        await after(300)
        const records = research.service.records()
        const made = records.runs.every(({ status }) => status === 'completed' || status === 'failed')
        const effects = effectsIn(state)
        if (
          made &&
          factsOf(records).size >= events &&
          [...factsOf(records)].every((fact) => effects.has(fact))
        )
          break
      }
      await after(20)
    }
    const exitCode = await pipeline.stop()
    if (exitCode !== 0) throw new Error(`the pipeline ended with ${exitCode} when it was asked to stop`)
    return {
      ...audit(),
      kills,
      faults,
      checkpoint_ahead: ahead,
      failures: pipeline.failures,
      concurrency: CONCURRENCY,
      max_rss_mb: Math.round(pipeline.maxRssMb),
      seconds: Math.round((performance.now() - began) / 100) / 10,
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

/** Faults of the service are for the pipeline; what is to happen to it must happen all the same. */
async function retried(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await work()
      return
    } catch (error) {
      if (attempt === 20) throw error
      await after(20)
    }
  }
}
