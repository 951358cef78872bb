import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { Archive } from './archive.ts'
import { auditOf, countedEntries, factsOf, withoutEffect } from './audit.ts'
import type { Audit } from './audit.ts'
import { divergenceOf } from './board.ts'
import { keyOf, Tally } from './effects.ts'
import { factOf } from './facts.ts'
import { freePort } from './free-port.ts'
import { ROLES } from './messages.ts'
import type { Role, RoleSettings, TransactionKind } from './messages.ts'
import { checkMutant } from './mutants.ts'
import type { MutantName } from './mutants.ts'
import { formOf, planOf } from './plan.ts'
import type { Step } from './plan.ts'
import { Research } from './research.ts'
import { SupervisedProcess } from './supervised-process.ts'
import { Workload } from './workload.ts'

/** Settings of {@link soak}. */
export interface SoakOptions {
  readonly events: number
  readonly kills: number
  readonly seed: number
  /**
   * A defect that the log's writers and readers run with, which a soak must detect. The soak ends as soon as it has, since it
   * cannot lose what it has found. Default: none.
   */
  readonly mutant?: MutantName
  /** How long the slowest handlers of the consumer `billing` take, in ms. Default 60. */
  readonly slowest?: number
  /** How long to wait without progress after the last step, until missing events count as lost; in ms. Default 20,000. */
  readonly patience?: number
  /** Called with a readable line for each step. */
  readonly onStep?: (text: string) => void
}

/** The result of a soak. */
export interface SoakResult extends Audit {
  /** Number of kills of any process. */
  readonly kills: number
  /** Number of kills that struck within a transaction of each kind. */
  readonly kills_within: Readonly<Partial<Record<TransactionKind, number>>>
  /** How often each form of fault struck, 0 for a planned one that did not; `restart` is one of the service. */
  readonly faults: Readonly<Record<string, number>>
  /** Number of keys whose state, and of outputs, that are not those of one run over the same entries without a kill. */
  readonly process_diverged: number
  /** How often an entry was acknowledged without an effect, after kills and between them. */
  readonly cursor_ahead: number
  /** Number of processes that were fenced after another one took their place. All but these went on. */
  readonly fenced: number
  /** Number of processes that were not. */
  readonly unfenced: number
  /** Number of entries that were deleted. */
  readonly trimmed: number
  /** Maximum resident memory of any process, in MB. */
  readonly max_rss_mb: number
  readonly seconds: number
  /** Number of exits of a process with an error for its supervisor. */
  readonly failures: number
  readonly concurrency: number
}

const READERS = ['billing', 'ledger', 'board'] as const
const CONCURRENCY = 8
/** Which part of the events is the monitor's. */
const MONITOR_SHARE = 1 / 20
/** How many more runs may end than are handled, so that events are always pending. */
const AHEAD = 100
const PATIENCE = 20_000
const SLOWEST = 60
/** How long the readers may take to start, in ms. */
const START_PATIENCE = 30_000
/** How long a step and the restart after it may take, in ms. */
const STEP_PATIENCE = 3_000
/** How long the kill of a consumer waits for a handler that runs, in ms. */
const MAX_IDLE = 1_000
/** How often one looks at what happens until all of it is inspected. */
const LOOKS = 10
/** How long nothing happens in an idle gap, in ms. */
const IDLE = 1_000

/** Runs a log's writers and readers over `events` events, with kills and faults, and audits the result. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { events, kills, seed, mutant, slowest = SLOWEST, patience = PATIENCE, onStep = () => {} } = options
  if (mutant !== undefined) await checkMutant(mutant)
  const began = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-soak-'))
  const apiKey = `key_${seed}`
  const webhookSecret = `secret_${seed}`
  const research = new Research({ folder, apiKey, webhookSecret, ahead: AHEAD })
  await research.start()
  const port = await freePort()
  const workload = await Workload.begin(research, {
    apiKey,
    events,
    groups: 1,
    monitors: 1,
    monitorShare: MONITOR_SHARE,
    urls: [`http://127.0.0.1:${port}/`],
    announced: 1,
  })

  const [group = ''] = workload.groups
  const [monitor = ''] = workload.monitors
  const log = join(folder, 'log.db')
  const place = { baseUrl: research.url, apiKey, webhookSecret, group, monitor, log, folder, port }
  let includeOutput = false
  const settings = (): RoleSettings => ({ ...place, concurrency: CONCURRENCY, slowest, includeOutput })
  const processes = new Map<Role, SupervisedProcess>()
  for (const role of ROLES)
    processes.set(role, new SupervisedProcess(role, settings, { mutant, onError: onStep }))
  const billing = {
    calls: new Tally(join(folder, 'billing.db'), 'calls'),
    effects: new Tally(join(folder, 'billing.db'), 'effects'),
  }
  const ledger = { effects: new Tally(join(folder, 'ledger.db'), 'effects') }
  const tallies = [billing.calls, billing.effects, ledger.effects]

  const plan = [...planOf(events, kills, seed)]
  const killsWithin: Partial<Record<TransactionKind, number>> = {}
  let restarts = 0
  let fenced = 0
  let ahead = 0
  let unfenced = 0
  let archive: Archive | undefined
  const update = () => {
    archive?.update()
    for (const tally of tallies) tally.update()
  }
  /** Number of events that both consumers have handled. */
  const handled = () => Math.min(billing.effects.facts, ledger.effects.facts)
  /** Whatever the log has as acknowledged has had its effect before. */
  const inspect = () => {
    archive?.update()
    const billed = archive?.acknowledgedBy('billing') ?? []
    const booked = archive?.acknowledgedBy('ledger') ?? []
    for (const tally of tallies) tally.update()
    ahead += withoutEffect(billed, billing.effects) + withoutEffect(booked, ledger.effects)
  }
  /** Whether the defect is found, so that nothing more can come of the soak. */
  const isFound = () => mutant !== undefined && ahead + unfenced > 0
  /** A kill of an idle consumer tests nothing. */
  const whileIdle = async () => {
    const deadline = performance.now() + MAX_IDLE
    while (billing.calls.rows <= billing.effects.rows && performance.now() < deadline) {
      await after(2)
      update()
    }
  }
  const kill = async ({ role, strike }: Pick<Extract<Step, { what: 'kill' }>, 'role' | 'strike'>) => {
    if (role === 'billing') await whileIdle()
    const hasStruck = await processes.get(role)?.kill(strike, inspect)
    if (strike === undefined || hasStruck !== true) return
    killsWithin[strike.within] = (killsWithin[strike.within] ?? 0) + 1
  }
  const happen = async (step: Step): Promise<void> => {
    onStep(`${handled()} handled: ${describe(step)}`)
    switch (step.what) {
      case 'fault':
        return research.arm(step.fault)
      case 'restart':
        restarts += 1
        return research.restart()
      case 'idle':
        return after(IDLE)
      case 'outputs':
        includeOutput = true
        // The streams begin again, now with outputs.
        research.arm({ kind: 'invalid-cursor', times: 1 })
        return kill({ role: 'recorder' })
      case 'takeover':
        if ((await processes.get(step.role)?.takeOver()) === true) fenced += 1
        else unfenced += 1
        return
      case 'kill':
        return kill(step)
    }
  }

  try {
    // Readers first: a new one begins at what the log still has.
    for (const role of READERS) processes.get(role)?.start()
    archive = await archiveOf(log, READERS.length)
    processes.get('receiver')?.start()
    processes.get('recorder')?.start()
    const deadline = performance.now() + PATIENCE + events * 20 + plan.length * STEP_PATIENCE
    let looks = 0
    let stage = ''
    let moved = performance.now()
    // Lost events never arrive, and what comes after them is not reached.
    while (!isFound() && performance.now() < deadline && performance.now() - moved < patience) {
      update()
      research.handled(handled(), plan[0]?.at)
      await workload.goOn(plan.length === 0 ? events : handled())
      for (let step = plan[0]; !isFound() && step !== undefined && step.at <= handled(); step = plan[0]) {
        plan.shift()
        research.handled(handled(), plan[0]?.at)
        await happen(step)
      }
      const rows = billing.effects.rows + ledger.effects.rows
      const reached = JSON.stringify([plan.length, archive.counted, rows, research.struck])
      if (reached !== stage || archive.counted === 0) moved = performance.now()
      stage = reached
      looks += 1
      if (looks % LOOKS === 0) inspect()
      await after(20)
      if (plan.length > 0 || !workload.isComplete) continue

      // The service runs in this process, so counting slows it down.
      await after(300)
      update()
      const facts = factsOf(research.service.records())
      const entries = countedEntries(archive)
      const recorded = new Set(entries.map(factOf))
      const isRecorded = facts.size >= events && [...facts].every((fact) => recorded.has(fact))
      const isHandled = entries.every(
        (entry) => billing.effects.has(keyOf(entry)) && ledger.effects.has(keyOf(entry)),
      )
      if (isRecorded && isHandled && research.isThrough) break
    }
    // What was acknowledged and killed has no effect for good.
    inspect()
    const faults = { ...research.struck, restart: restarts }
    research.service.faults.clear()
    // Writers first, so that the readers are through with everything.
    for (const role of ['receiver', 'recorder', 'billing', 'ledger'] as const) {
      const exitCode = await processes.get(role)?.stop()
      if (exitCode !== 0) throw new Error(`${role} ended with ${exitCode} when it was stopped`)
    }
    const patientUntil = performance.now() + patience
    do {
      await after(50)
      update()
    } while (!isFound() && !archive.isPassedBy('process:board') && performance.now() < patientUntil)
    const exitCode = await processes.get('board')?.stop()
    if (exitCode !== 0) throw new Error(`board ended with ${exitCode} when it was stopped`)
    const evidence = { records: research.service.records(), archive, billing, ledger }
    const { lost, doubled_effects, recorded_twice, redelivered, ...made } = auditOf(evidence)
    const total = (count: (process: SupervisedProcess) => number) =>
      [...processes.values()].reduce((sum, process) => sum + count(process), 0)
    return {
      ...made,
      kills: total((process) => process.kills),
      kills_within: killsWithin,
      faults,
      lost,
      doubled_effects,
      recorded_twice,
      process_diverged: divergenceOf(archive),
      redelivered,
      cursor_ahead: ahead,
      fenced,
      unfenced,
      trimmed: archive.entries.length - archive.stored,
      max_rss_mb: Math.round(Math.max(...Array.from(processes.values(), ({ maxRssMb }) => maxRssMb))),
      seconds: Math.round((performance.now() - began) / 100) / 10,
      failures: total((process) => process.failures),
      concurrency: CONCURRENCY,
    }
  } finally {
    await Promise.all(Array.from(processes.values(), (process) => process.stop().catch(() => null)))
    archive?.close()
    for (const tally of tallies) tally.close()
    await research.service.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** The archive of a log, once its readers are known to it. */
async function archiveOf(log: string, readers: number): Promise<Archive> {
  const deadline = performance.now() + START_PATIENCE
  while (!Archive.exists(log)) await untilNextLook(deadline)
  const archive = new Archive(log)
  while (archive.readers < readers + 1) await untilNextLook(deadline)
  return archive
}

async function untilNextLook(deadline: number): Promise<void> {
  if (performance.now() > deadline) throw new Error('the readers of the log did not start')
  await after(20)
}

function describe(step: Step): string {
  if (step.what === 'fault') return formOf(step.fault)
  if (step.what === 'takeover') return `takeover of ${step.role}`
  if (step.what !== 'kill') return step.what
  const { role, strike } = step
  return strike === undefined
    ? `kill ${role}`
    : `kill ${role} ${strike.at} the commit of its ${strike.within}`
}
