import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { LogInUseError } from 'rivulet/log'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { randomOf } from '../../bench/random.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import { readAll } from '../log/conformance/fixture.ts'
import { alertsOf, BEGIN, compared, hasRead, record, withoutKill } from '../rules/run/kill-log.ts'
import type { RecordedEvents } from '../rules/run/kill-log.ts'
import type { RulesSettings } from './nats/rules-process.ts'
import { NatsServer } from './nats/server.ts'

const NAME = 'alerts'
const LEASE = 1_000
const RULES = 30
const EVENTS = 400
const KILLS = 2
const PATIENCE = { timeout: 30_000 }

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

function startRules(owner: string): ChildProcess {
  const settings: RulesSettings = { servers: server.url, name: NAME, lease: LEASE, owner, rules: RULES }
  const child = fork(join(import.meta.dirname, 'nats/rules-process.ts'), [JSON.stringify(settings)], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** The alerts of each rule, in order. */
function byRule(alerts: readonly string[]): readonly string[] {
  const ruleOf = (alert: string): string => JSON.parse(alert).data.alert
  return [...Map.groupBy(alerts, ruleOf)].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, own]) => own)
}

it('rules in two processes append the alerts of one that is never killed, those of each rule in order, whichever is killed', async () => {
  const clock = { now: BEGIN }
  const store = natsStore({ servers: server.url, name: NAME, lease: LEASE, clock: () => clock.now })
  onTestFinished(() => store.close())
  await store.positionAt('start')
  const random = randomOf(1)
  const recorded: RecordedEvents[] = []
  const processes = new Map(['one', 'other'].map((owner) => [owner, startRules(owner)]))
  /** The one that runs the rules. */
  const runs = async () => {
    try {
      await store.release(await store.claim('process:rules'))
    } catch (error) {
      if (error instanceof LogInUseError) return error.owner
      throw error
    }
    return undefined
  }
  for (let kill = 1; kill <= KILLS; kill++) {
    await expect.poll(runs, PATIENCE).toBeOneOf(['one', 'other'])
    await record(store, recorded, Math.floor((kill * EVENTS) / (KILLS + 1)), clock, random)
    const owner = await runs()
    const killed = processes.get(owner ?? '')
    if (owner === undefined || killed === undefined) throw new Error('no process runs the rules')
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    // Its successor has its name, so that it starts once the other one could take over.
    await expect.poll(runs, PATIENCE).not.toBe(owner)
    processes.set(owner, startRules(owner))
  }
  await record(store, recorded, EVENTS, clock, random)
  await expect.poll(() => hasRead(store), PATIENCE).toBe(true)
  for (const child of processes.values()) {
    child.send('end')
    await once(child, 'exit')
  }
  // Of one append, and of one commit, the order between sources is the log's.
  const events = (await readAll(store)).filter(({ cause }) => cause === undefined)
  const inOrder = events.map((event) => ({ events: [event], recorded: event.recorded }))
  const result = compared(byRule(await alertsOf(store)), byRule(await withoutKill(inOrder, RULES)))
  expect(result).toMatchObject({ lost: 0, doubled: 0, wrong: 0, same_order: true })
  expect(events.filter(({ type }) => type !== 'log.tick')).toHaveLength(EVENTS)
  expect(result.transitions).toBeGreaterThan(100)
})
