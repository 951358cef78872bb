import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setImmediate as turn, setTimeout } from 'node:timers/promises'
import { memoryLog, monitorEvent, openLog } from 'rivulet'
import type { LogStore, ResearchEvent } from 'rivulet'
import { sqliteLog } from 'rivulet/log/sqlite'
import { randomOf } from '../../../bench/random.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import { append } from '../../log/append.ts'
import { readAll } from '../../log/conformance/fixture.ts'
import { rulesToKill } from './kill-rules.ts'

/** What is killed, and how often. */
export interface KillPlan {
  /** The path of a new log. */
  readonly file: string
  readonly events: number
  readonly rules: number
  readonly kills: number
  readonly seed: number
  readonly onStep?: (text: string) => void
}

/** What became of the alerts. */
export interface KillResult {
  readonly events: number
  readonly rules: number
  readonly kills: number
  /** How many of the kills came at a commit of the rules; the others came while they waited for events. */
  readonly kills_at_commits: number
  /** Number of alert events of the run without a kill. */
  readonly transitions: number
  /** Those that the run with kills does not have. */
  readonly lost: number
  /** Those that it has more than once. */
  readonly doubled: number
  /** Those that only it has. */
  readonly wrong: number
  /** Some of those that are lost or wrong. */
  readonly examples: readonly string[]
  /** Whether they come in the same order. */
  readonly same_order: boolean
  readonly seconds: number
}

const BEGIN = Date.UTC(2026, 0, 1)

/** Maximum number of events of an append. */
const APPEND = 50

/** About how many events the rules have in a commit, at least, so that most kills come before all are read. */
const EVENTS_PER_COMMIT = 12

/** Kills the process of rules while a recorder appends, and compares its alerts with those of a run without a kill. */
export async function killRules(plan: KillPlan): Promise<KillResult> {
  const began = performance.now()
  const { file, events, rules, kills, seed, onStep = () => {} } = plan
  const random = randomOf(seed)
  const clock = { now: BEGIN }
  const store = sqliteLog(file, { clock: () => clock.now })
  try {
    await store.positionAt('start')
    const recorded: ResearchEvent[][] = []
    let killsAtCommits = 0
    for (let kill = 0; kill < kills; kill++) {
      const dieAt = 1 + Math.floor((random() * events) / kills / EVENTS_PER_COMMIT)
      const child = startRules(file, rules, dieAt, random() < 0.5 ? 'before' : 'after')
      const exited = once(child, 'exit')
      const isOver = () => child.exitCode !== null || child.signalCode !== null
      const until = Math.floor(((kill + 1) * events) / (kills + 1))
      await record(store, recorded, until, clock, random)
      while (!isOver()) {
        // It waits for more: this kill comes while it is idle.
        if (await hasRead(store)) child.kill('SIGKILL')
        else await Promise.race([exited, setTimeout(20)])
      }
      const [, signal]: unknown[] = await exited
      if (signal !== 'SIGKILL') throw new Error('the rules ended by themselves')
      if (!(await hasRead(store))) killsAtCommits++
      onStep(`kill ${kill + 1} of ${kills} at commit ${dieAt}, after ${until} events`)
    }
    const last = startRules(file, rules, 0, 'before')
    await record(store, recorded, events, clock, random)
    last.send('end')
    const [code]: unknown[] = await once(last, 'exit')
    if (code !== 0) throw new Error(`the rules ended with ${String(code)}`)
    const killed = await alertsOf(store)
    onStep('the run without a kill')
    const expected = await withoutKill(recorded, rules)
    return {
      events,
      rules,
      kills,
      kills_at_commits: killsAtCommits,
      ...compared(killed, expected),
      seconds: Math.round((performance.now() - began) / 1_000),
    }
  } finally {
    await store.close()
  }
}

function startRules(file: string, rules: number, dieAt: number, moment: 'before' | 'after') {
  return fork(join(import.meta.dirname, 'killed-process.ts'), [file, String(rules), String(dieAt), moment], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
}

async function hasRead(store: LogStore): Promise<boolean> {
  return (await store.reader('process:rules'))?.cursor === (await store.positionAt('end'))
}

/** Appends events up to this number, one recorded each second. */
async function record(
  store: LogStore,
  recorded: ResearchEvent[][],
  until: number,
  clock: { now: number },
  random: () => number,
): Promise<void> {
  let count = recorded.reduce((sum, { length }) => sum + length, 0)
  while (count < until) {
    const size = Math.min(until - count, 1 + Math.floor(random() * APPEND))
    clock.now += size * 1_000
    const events = Array.from({ length: size }, (_, n) =>
      eventOf(count + n, clock.now - (size - n) * 1_000, random),
    )
    recorded.push(events)
    await append(store, events)
    count += size
    await turn()
  }
}

/** An event of one of ten monitors. Some come late. */
function eventOf(n: number, now: number, random: () => number): ResearchEvent {
  const monitor = `m${Math.floor(random() * 10)}`
  const kind = random()
  const at = now - (random() < 0.2 ? Math.floor(random() * 40_000) : 0)
  const time = new Date(at).toISOString()
  const received = new Date(now).toISOString()
  if (kind < 0.6) {
    const output = { type: 'text', content: `${n}`, basis: [] } as const
    const detection = {
      event_type: 'event_stream',
      event_id: `${n}`,
      event_group_id: 'g',
      event_date: null,
      output,
    } as const
    return { ...monitorEvent(monitor, detection, 'poll'), time, received }
  }
  if (kind < 0.8) {
    return {
      ...monitorEvent(monitor, { event_type: 'completion', timestamp: time }, 'poll'),
      id: `c${n}`,
      time,
      received,
    }
  }
  const error = { event_type: 'error', error_message: 'e', timestamp: time } as const
  return { ...monitorEvent(monitor, error, 'poll'), id: `e${n}`, time, received }
}

/** The alerts of a log as texts. */
async function alertsOf(store: LogStore): Promise<string[]> {
  const entries = await readAll(store)
  return entries
    .filter(({ cause }) => cause?.process === 'rules')
    .map(({ type, time, data }) => JSON.stringify({ type, time, data }))
}

async function withoutKill(
  recorded: readonly (readonly ResearchEvent[])[],
  rules: number,
): Promise<string[]> {
  const clock = { now: BEGIN }
  const store = memoryLog({ clock: () => clock.now })
  await using log = await openLog(store)
  const running = runRules(log, rulesToKill(rules), { startAt: 'start' })
  for (const events of recorded) {
    clock.now += events.length * 1_000
    await append(store, events)
  }
  while (!(await hasRead(store))) await turn()
  await running.stop()
  return await alertsOf(store)
}

function compared(killed: readonly string[], expected: readonly string[]) {
  const [had, wanted] = [new Set(killed), new Set(expected)]
  const lost = expected.filter((alert) => !had.has(alert))
  const wrong = killed.filter((alert) => !wanted.has(alert))
  return {
    transitions: expected.length,
    lost: lost.length,
    doubled: killed.length - had.size,
    wrong: wrong.length,
    examples: [...lost.slice(0, 3), ...wrong.slice(0, 3)],
    same_order: killed.join('\n') === expected.join('\n'),
  }
}
