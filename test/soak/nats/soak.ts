import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { openLog } from 'rivulet/log'
import type { ServiceRecords } from 'rivulet/service'
import { natsStore } from '../../../src/log/nats/index.ts'
import { StreamReader } from '../../real/nats/audit.ts'
import type { StoredEntry } from '../../real/nats/audit.ts'
import { NatsServer } from '../../real/nats/server.ts'
import { factsOf } from '../audit.ts'
import { keyOf, Tally } from '../effects.ts'
import { factOf, isCounted } from '../facts.ts'
import { freePort } from '../free-port.ts'
import { checkMutant } from '../mutants.ts'
import type { MutantName } from '../mutants.ts'
import { formOf } from '../plan.ts'
import { Research } from '../research.ts'
import { Workload } from '../workload.ts'
import { natsAuditOf } from './audit.ts'
import type { NatsAudit, NatsEvidence } from './audit.ts'
import { SOURCE_FAILED } from './messages.ts'
import type { WorkerSettings } from './messages.ts'
import { natsPlanOf } from './plan.ts'
import type { NatsPlanOptions, NatsStep } from './plan.ts'
import { SupervisedWorker } from './supervised-worker.ts'
import type { Totals } from './totals.ts'

/** Settings of {@link soakNats}. */
export interface NatsSoakOptions extends NatsPlanOptions {
  readonly workers: number
  /** Of the log, in ms. */
  readonly lease: number
  /** Of the log. */
  readonly partitions: number
  /** Number of monitors, and of groups. */
  readonly monitors: number
  readonly groups: number
  /** A defect that the workers run with. The soak ends as soon as it is found. Default: none. */
  readonly mutant?: MutantName | undefined
  /** How long to wait without progress after the last step, until missing events count as lost; in ms. Default 60,000. */
  readonly patience?: number
  /** Called with a readable line for each step. */
  readonly onStep?: (text: string) => void
}

/** The result of a soak. */
export interface NatsSoakResult extends NatsAudit {
  readonly kills: number
  readonly stops: number
  readonly server_kills: number
  /** Number of the oldest entries, which retention has deleted. */
  readonly deleted: number
  /** Number of these that a reader had not acknowledged. One that several readers needed counts for each of them. */
  readonly deleted_early: number
  /** Number of these that the audit has not seen. */
  readonly unread: number
  /** Number of entries after these that the server had at some time and has no more. */
  readonly vanished: number
  /** How often each form of fault struck, 0 for a planned one that did not; `restart` is one of the service. */
  readonly faults: Readonly<Record<string, number>>
  readonly seconds: number
  /** What happened to workers and servers, after how many seconds and recorded events. */
  readonly steps: readonly string[]
  /** The longest time in which no event was recorded, between the first one and the last one, in ms, and after how many events. */
  readonly longest_pause: number
  readonly longest_pause_after: number
  /** The longest time from the end of a run in the service to its first entry, in ms. */
  readonly longest_delay: number
  /** Number of entries of which appends were acknowledged to each worker. */
  readonly recorded_by: Readonly<Record<string, number>>
  /** Number of events that workers have appended and the log had. */
  readonly duplicates_refused: number
  /** Number of calls of the handler that has each effect at least once, beyond the first one of an entry. */
  readonly redelivered: number
  /** Number of entries that are more complete than an earlier one. */
  readonly revisions: number
  /** Number of entries that webhooks have brought. */
  readonly by_webhook: number
  /** How often a job of a worker has failed, by the name of the error. It was started again. */
  readonly failures: Readonly<Record<string, number>>
  /** The failures that none of the faults explains. */
  readonly unexpected: readonly string[]
}

/** How many more runs may end than are recorded, so that events are always pending: at most this. */
const AHEAD = 100
const PATIENCE = 60_000
/** How long faults are waited for that have nothing to strike at, once everything is recorded and handled, in ms. */
const FAULT_PATIENCE = 5_000
/** Which part of the events is that of the monitors. */
const MONITOR_SHARE = 0.4
/** How old the entries may become that no reader needs, in ms. */
const MAX_AGE = 1_000
/** How long the slowest calls of a handler take, in ms: the readers are behind by more than the age then. */
const SLOWEST = 1_500
/** One of so many calls of the handler is slow. */
const SLOW_EVERY = 50
/** How many monitors send webhooks. */
const ANNOUNCED = 2
/** The path of the groups' streams. */
const GROUPS = '/v1beta/tasks/groups/'
/** Of both streams, in ns. */
const DUPLICATE_WINDOW = 2e9
const LOG = 'soak'
/** How often new entries are read until the readers' positions are, and a defect is looked for. */
const LOOKS = 10
/** What becomes of a worker that another one has overtaken, whose server was down, or whose resource the service had not. */
const EXPECTED_FAILURES = new Set(['FencedError', 'LogServerError', 'LogConflictError', SOURCE_FAILED])

/** Runs workers over `events` events of a service, with kills of all kinds, and audits the result. */
export async function soakNats(
  options: NatsSoakOptions,
): Promise<{ readonly result: NatsSoakResult; readonly evidence: NatsEvidence }> {
  const { events, seed, mutant, lease, patience = PATIENCE, onStep = () => {} } = options
  if (mutant !== undefined) await checkMutant(mutant)
  const began = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-soak-'))
  const place = { apiKey: `key_${seed}`, webhookSecret: `secret_${seed}`, folder }
  /** When each run ended in the service, by its input. */
  const made = new Map<unknown, number>()
  const onMade = (input: unknown) => void made.set(input, Date.now())
  const research = new Research({ ...place, ahead: Math.min(AHEAD, events / 20), onMade })
  const server = await NatsServer.start()
  const workers: SupervisedWorker[] = []
  const progress = new Progress(folder, options.partitions)
  const plan = [...natsPlanOf(options)]
  /** Steps that take their time while others begin. */
  const underWay = new Set<Promise<unknown>>()
  const steps: string[] = []
  const done = { kills: 0, stops: 0, server_kills: 0, restarts: 0 }
  // Of what is sent again with outputs, each event has to be recorded again. A defect may be that this is done without need.
  let includeOutput = mutant !== undefined

  /** One that is not suspended, by a number from 0 to 1. */
  const workerAt = (number: number) => {
    const running = workers.filter(({ isSuspended }) => !isSuspended)
    return running[Math.floor(number * running.length)]
  }
  const happen = async (step: NatsStep): Promise<void> => {
    switch (step.what) {
      case 'fault':
        return research.arm(step.fault)
      case 'restart':
        done.restarts += 1
        return research.restart()
      case 'outputs':
        includeOutput = true
        // The streams begin again, now with outputs.
        research.arm({ kind: 'invalid-cursor', path: GROUPS, times: options.groups })
        return void (await Promise.all(workers.map((worker) => worker.kill(undefined))))
      case 'kill':
        await workerAt(step.worker)?.kill(step.strike)
        done.kills += 1
        return
      case 'stop':
        if ((await workerAt(step.worker)?.suspend(step.strike, step.leases * lease)) === true) done.stops += 1
        return
      case 'server-kill':
        await server.kill()
        await after(step.leases * lease)
        await server.resume()
        done.server_kills += 1
        return
    }
  }
  const begin = (step: NatsStep) => {
    const at = `${seconds(began)} s, ${progress.facts.size} recorded: ${describe(step)}`
    onStep(at)
    if (step.what !== 'fault') steps.push(at)
    const happening = happen(step)
    if (step.what !== 'stop' && step.what !== 'server-kill') return happening
    underWay.add(happening)
    void happening.then(() => underWay.delete(happening))
    return undefined
  }

  try {
    await research.start()
    const ports = await Promise.all(Array.from({ length: options.workers }, freePort))
    const workload = await Workload.begin(research, {
      apiKey: place.apiKey,
      events,
      groups: options.groups,
      monitors: options.monitors,
      monitorShare: MONITOR_SHARE,
      urls: ports.map((port) => `http://127.0.0.1:${port}/`),
      announced: ANNOUNCED,
    })
    await createLog(server.url, options)
    await progress.open(server.url)
    for (const [n, port] of ports.entries()) {
      const owner = `worker ${n + 1}`
      const { groups, monitors } = workload
      const resources = { baseUrl: research.url, groups, monitors }
      const settings = (): WorkerSettings => {
        // A defect is to be found in few events, whichever they are.
        const slowEvery = mutant === undefined ? SLOW_EVERY : 1
        const retention = { maxAge: MAX_AGE, slowest: SLOWEST, slowEvery }
        const own = { owner, port, includeOutput }
        return { servers: server.url, log: LOG, lease, ...own, ...retention, ...resources, ...place }
      }
      workers.push(new SupervisedWorker(owner, settings, { mutant, onError: onStep }))
    }
    for (const worker of workers) worker.start()

    let stage = ''
    let moved = performance.now()
    for (let looks = 1; performance.now() - moved < patience; looks++) {
      await progress.update()
      // Readers first: a new one begins at what the log still has.
      if (!progress.areReadersKnown) {
        await after(20)
        continue
      }
      const recorded = progress.facts.size
      // The rest of the events is that of the monitors.
      research.handled(progress.runs, plan[0] && plan[0].at * (1 - MONITOR_SHARE))
      await workload.goOn(plan.length === 0 ? events : recorded)
      for (let step = plan[0]; step !== undefined && step.at <= recorded; step = plan[0]) {
        plan.shift()
        await begin(step)
      }
      const reached = JSON.stringify([plan.length, underWay.size, progress.reached, research.struck])
      if (reached !== stage) moved = performance.now()
      stage = reached
      await after(20)
      // The service runs in this process, so counting slows it down.
      const isToFind = mutant !== undefined && looks % LOOKS === 0
      if (isToFind && progress.isBroken(research.service.records())) break
      if (mutant !== undefined || plan.length > 0 || underWay.size > 0 || !workload.isComplete) continue
      await after(300)
      const facts = factsOf(research.service.records())
      const isRecorded = facts.size >= events && [...facts].every((fact) => progress.facts.has(fact))
      if (!isRecorded || !progress.isHandled) continue
      if (research.isThrough || performance.now() - moved > FAULT_PATIENCE) break
    }
    onStep(`${seconds(began)} s: stopping`)
    await Promise.all(underWay)
    const { restarts, ...counts } = done
    const faults = { ...research.struck, restart: restarts }
    research.service.faults.clear()
    const codes = await Promise.all(workers.map((worker) => worker.stop()))
    const stuck = codes.flatMap((code, n) => (code === 0 ? [] : [`worker ${n + 1} was stopped with ${code}`]))
    const failures = workers.flatMap((worker) => worker.failures)
    await progress.update()
    const kept = await readerOf(server.url)
    const { first } = kept
    const evidence: NatsEvidence = {
      records: research.service.records(),
      entries: progress.entries,
      billed: progress.billed.keys,
      booked: progress.booked.keys,
      ahead: progress.ahead,
      states: await statesOf(server.url, lease),
    }
    const result: NatsSoakResult = {
      ...natsAuditOf(evidence),
      ...counts,
      deleted: first - 1,
      deleted_early: progress.deletedEarly,
      unread: first - 1 - progress.numbers.filter((number) => number < first).length,
      vanished: missing(
        progress.entries.filter(({ sequence }) => sequence >= first),
        kept.entries,
      ),
      faults,
      seconds: seconds(began),
      steps,
      ...pauses(evidence.entries, made),
      recorded_by: Object.fromEntries(workers.map(({ owner, appended }) => [owner, appended])),
      duplicates_refused: workers.reduce((sum, { duplicates }) => sum + duplicates, 0),
      redelivered: progress.called.repeated,
      revisions: evidence.entries.filter(({ revision }) => revision > 1).length,
      by_webhook: evidence.entries.filter(({ via }) => via === 'webhook').length,
      failures: numbersOf(failures.map(({ error }) => error)),
      unexpected: [
        ...stuck,
        ...failures
          .filter(({ error }) => !EXPECTED_FAILURES.has(error))
          .map(({ error, message }) => `${error}: ${message}`),
      ],
    }
    return { result, evidence }
  } finally {
    for (const worker of workers) worker.end()
    await Promise.allSettled(underWay)
    await progress.close()
    await research.service.close()
    await server.remove()
    await rm(folder, { recursive: true, force: true })
  }
}

/** What the server and the effects have, as far as it was read. */
class Progress {
  readonly facts = new Set<string>()
  /** Number of the runs among these. */
  runs = 0
  readonly called: Tally
  readonly billed: Tally
  readonly booked: Tally
  /** How often an entry was acknowledged that had no effect by then. */
  ahead = 0
  /** How often an entry was deleted that a reader had not acknowledged. */
  deletedEarly = 0
  readonly #partitions: number
  #reader: StreamReader | undefined
  #read = 0
  #updates = 0
  /** Which reader has which entries, and how many of these were compared with the effects. */
  readonly #readers: {
    readonly name: string
    readonly effects: Tally | undefined
    readonly entries: StoredEntry[]
    compared: number
    /** Undefined for one that the log does not know. */
    cursor: number | undefined
    /** The number of its last entry that was found to be deleted early. */
    deleted: number
  }[]

  constructor(folder: string, partitions: number) {
    this.#partitions = partitions
    this.called = new Tally(join(folder, 'billing.db'), 'calls')
    this.billed = new Tally(join(folder, 'billing.db'), 'effects')
    this.booked = new Tally(join(folder, 'ledger.db'), 'effects')
    const reader = (name: string, effects?: Tally) => {
      return { name, effects, entries: [], compared: 0, cursor: undefined, deleted: 0 }
    }
    this.#readers = [
      // Its parts come first: a partition is the place of its reader.
      ...Array.from({ length: partitions }, (_, part) => reader(`consumer.${part}:billing`, this.billed)),
      reader('consumer:ledger', this.booked),
      reader('process:totals'),
    ]
  }

  async open(servers: string): Promise<void> {
    // Below the age: what becomes old while a question waits is deleted before it was read.
    this.#reader = await StreamReader.open(servers, LOG, MAX_AGE / 4)
  }

  get entries(): readonly StoredEntry[] {
    return this.#reader?.entries ?? []
  }

  /** The numbers of all messages that were read. */
  get numbers(): readonly number[] {
    return [...this.entries.map(({ sequence }) => sequence), ...(this.#reader?.barriers ?? [])]
  }

  /** What changes as long as something goes on. */
  get reached(): readonly number[] {
    // Not the cursors: ticks move them for as long as a recorder runs.
    const handled = this.#readers.map(({ compared }) => compared)
    return [this.facts.size, this.billed.rows, this.booked.rows, ...handled]
  }

  /** Whether the log knows all readers. */
  get areReadersKnown(): boolean {
    return this.#readers.every(({ cursor }) => cursor !== undefined)
  }

  /** Whether all readers have passed all entries that have to have an effect. */
  get isHandled(): boolean {
    return this.#readers.every(({ entries, cursor = 0 }) => cursor >= (entries.at(-1)?.sequence ?? 0))
  }

  async update(): Promise<void> {
    this.#updates += 1
    try {
      await this.#reader?.update()
      if (this.#updates % LOOKS === 0) await this.inspect()
    } catch {
      // The server is down.
    }
    for (const entry of this.entries.slice(this.#read)) {
      if (!isCounted(entry.type)) continue
      if (entry.type === 'task_run.state' && !this.facts.has(factOf(entry))) this.runs += 1
      this.facts.add(factOf(entry))
      for (const [at, { entries }] of this.#readers.entries())
        if (at >= this.#partitions || at === entry.partition) entries.push(entry)
    }
    this.#read = this.entries.length
    for (const tally of [this.called, this.billed, this.booked]) tally.update()
  }

  /** Whatever is acknowledged has had its effect before, and is deleted after it. Rejects where the server is down. */
  async inspect(): Promise<void> {
    // As of before the cursors, which may only have gone on since.
    const first = this.#reader?.first ?? 0
    const cursors = await Promise.all(this.#readers.map(({ name }) => this.#reader?.cursorOf(name)))
    for (const [at, reader] of this.#readers.entries()) {
      const { effects, entries } = reader
      // One that was known and no longer is needs all that it has needed.
      const cursor = cursors[at] ?? reader.cursor
      reader.cursor = cursor
      if (cursor === undefined) continue
      effects?.update()
      for (let next = entries[reader.compared]; next !== undefined && next.sequence <= cursor;) {
        if (effects?.has(keyOf(next)) === false) this.ahead += 1
        reader.compared += 1
        next = entries[reader.compared]
      }
      const isEarly = ({ sequence }: StoredEntry) => sequence < first && sequence > reader.deleted
      const early = entries.slice(reader.compared).filter(isEarly)
      this.deletedEarly += early.length
      reader.deleted = early.at(-1)?.sequence ?? reader.deleted
    }
  }

  /** Whether something is wrong that can no longer become right. */
  isBroken(records: ServiceRecords): boolean {
    const { entries, ahead } = this
    const evidence = { records, entries, ahead, billed: this.billed.keys, booked: this.booked.keys }
    const audit = natsAuditOf({ ...evidence, states: new Map() })
    const { doubled, recorded_twice, reordered, acknowledged_unhandled, doubled_effects } = audit
    const broken = [doubled, recorded_twice, reordered, acknowledged_unhandled, doubled_effects]
    return [...broken, this.deletedEarly].some((count) => count > 0)
  }

  async close(): Promise<void> {
    for (const tally of [this.called, this.billed, this.booked]) tally.close()
    await this.#reader?.close()
  }
}

/** Creates the log, whose streams have a short window for duplicates. */
async function createLog(
  servers: string,
  { lease, partitions }: Pick<NatsSoakOptions, 'lease' | 'partitions'>,
): Promise<void> {
  const log = await openLog(natsStore({ servers, name: LOG, lease, partitions }))
  await log.positionAt('start')
  await log.close()
  const nats = await connect({ servers })
  const { streams } = await jetstreamManager(nats)
  for (const kind of ['events', 'state']) {
    await streams.update(`rivulet_${LOG}_${kind}`, { duplicate_window: DUPLICATE_WINDOW })
  }
  await nats.close()
}

/** All that the server has in the end, whatever it had before. */
async function readerOf(servers: string): Promise<StreamReader> {
  const reader = await StreamReader.open(servers, LOG)
  try {
    await reader.update()
    return reader
  } finally {
    await reader.close()
  }
}

/** The states of the process, as users read them. */
async function statesOf(servers: string, lease: number): Promise<ReadonlyMap<string, Totals>> {
  const log = await openLog(natsStore({ servers, name: LOG, lease }))
  try {
    return (await log.state<Totals>('totals').snapshot()).state
  } finally {
    await log.close()
  }
}

/** Number of entries that the server had, and has no more. */
function missing(before: readonly StoredEntry[], kept: readonly StoredEntry[]): number {
  const keys = new Set(kept.map((entry) => `${entry.sequence} ${keyOf(entry)}`))
  return before.filter((entry) => !keys.has(`${entry.sequence} ${keyOf(entry)}`)).length
}

function pauses(
  entries: readonly StoredEntry[],
  made: ReadonlyMap<unknown, number>,
): Pick<NatsSoakResult, 'longest_pause' | 'longest_pause_after' | 'longest_delay'> {
  const counted = entries.filter(({ type, revision }) => isCounted(type) && revision === 1)
  const gaps = counted.slice(1).map(({ stored }, n) => stored - (counted[n]?.stored ?? stored))
  const first = new Map(counted.map((entry) => [factOf(entry), entry.stored]))
  const delays = entries.flatMap((entry) => {
    const [question] = /question \d+/.exec(JSON.stringify(entry.data)) ?? []
    const ended = made.get(question)
    const stored = first.get(factOf(entry))
    return ended === undefined || stored === undefined ? [] : [stored - ended]
  })
  const longest_pause = Math.max(0, ...gaps)
  const longest_pause_after = gaps.indexOf(longest_pause) + 1
  return { longest_pause, longest_pause_after, longest_delay: Math.max(0, ...delays) }
}

function numbersOf(names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Array.from(
      Map.groupBy(names, (name) => name),
      ([name, all]) => [name, all.length],
    ),
  )
}

function seconds(since: number): number {
  return Math.round((performance.now() - since) / 100) / 10
}

function describe(step: NatsStep): string {
  switch (step.what) {
    case 'fault':
      return formOf(step.fault)
    case 'server-kill':
      return `kill of the server for ${step.leases} leases`
    case 'restart':
      return 'restart of the service'
    case 'outputs':
      return 'all workers begin again, with outputs'
    default: {
      const { what, strike } = step
      const when =
        strike === undefined ? '' : `, ${strike.delay} ms after the beginning of its ${strike.within}`
      return `${what === 'kill' ? 'kill' : `suspension for ${step.leases.toFixed(1)} leases`} of a worker${when}`
    }
  }
}
