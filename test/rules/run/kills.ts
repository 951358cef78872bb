import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { sqliteStore } from 'rivulet/log/sqlite'
import { randomOf } from '../../../bench/random.ts'
import { programFiles } from '../../support/programs.ts'
import { alertsOf, BEGIN, compared, hasRead, record, recordGaps, withoutKill } from './kill-log.ts'
import type { RecordedEvents } from './kill-log.ts'

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
  /** How many kills came at the commit of gaps of all sources. */
  readonly kills_at_gaps: number
  /** Number of alert events of the run without a kill. */
  readonly transitions: number
  /** Those that say that events may be missing. */
  readonly of_gaps: number
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

/** Every other kill is at the commit of gaps: in turn before and after it. */
const AT_GAPS = ['before', undefined, 'after', undefined] as const

/** About how many events the rules have in a commit, at least, so that most kills come before all are read. */
const EVENTS_PER_COMMIT = 12

const fileOf = await programFiles()

/** Kills the process of rules while a recorder appends, and compares its alerts with those of a run without a kill. */
export async function killRules(plan: KillPlan): Promise<KillResult> {
  const began = performance.now()
  const { file, events, rules, kills, seed, onStep = () => {} } = plan
  const random = randomOf(seed)
  const clock = { now: BEGIN }
  const store = sqliteStore(file, { clock: () => clock.now })
  try {
    await store.positionAt('start')
    const recorded: RecordedEvents[] = []
    let killsAtCommits = 0
    let killsAtGaps = 0
    for (let kill = 0; kill < kills; kill++) {
      const atGaps = AT_GAPS[kill % AT_GAPS.length]
      const dieAt = atGaps === undefined ? 1 + Math.floor((random() * events) / kills / EVENTS_PER_COMMIT) : 0
      const moment = atGaps ?? (random() < 0.5 ? 'before' : 'after')
      const child = startRules(file, rules, dieAt, moment)
      const exited = once(child, 'exit')
      const isOver = () => child.exitCode !== null || child.signalCode !== null
      const until = Math.floor(((kill + 1) * events) / (kills + 1))
      await record(store, recorded, until, clock, random)
      if (atGaps !== undefined) {
        while (!isOver() && !(await hasRead(store))) await setTimeout(20)
        const armed = once(child, 'message')
        child.send('next')
        await Promise.race([armed, exited])
        const before = await store.positionAt('end')
        await recordGaps(store, recorded, clock)
        await exited
        const cursor = (await store.reader('process:rules'))?.cursor
        if ((cursor === before) === (atGaps === 'before')) killsAtGaps++
      }
      while (!isOver()) {
        // It waits for more: this kill comes while it is idle.
        if (await hasRead(store)) child.kill('SIGKILL')
        else await Promise.race([exited, setTimeout(20)])
      }
      const [, signal]: unknown[] = await exited
      if (signal !== 'SIGKILL') throw new Error('the rules ended by themselves')
      if (!(await hasRead(store))) killsAtCommits++
      const place = atGaps === undefined ? `commit ${dieAt}` : 'the commit of gaps'
      onStep(`kill ${kill + 1} of ${kills} at ${place}, after ${until} events`)
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
      kills_at_gaps: killsAtGaps,
      ...compared(killed, expected),
      seconds: Math.round((performance.now() - began) / 1_000),
    }
  } finally {
    await store.close()
  }
}

function startRules(file: string, rules: number, dieAt: number, moment: 'before' | 'after') {
  return fork(fileOf('test/rules/run/killed-process.ts'), [file, String(rules), String(dieAt), moment], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
}
