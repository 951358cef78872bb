/** Runs rules over a log, or stands by while another process does. A message ends it. */
import { openLog } from 'rivulet/log'
import { natsStore } from '../../../src/log/nats/index.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import { rulesToKill } from '../../rules/run/kill-rules.ts'

/** What it is started with. */
export interface RulesSettings {
  readonly servers: string
  readonly name: string
  readonly lease: number
  readonly owner: string
  /** The number of rules. */
  readonly rules: number
}

const { rules, ...settings }: RulesSettings = JSON.parse(process.argv[2] ?? '')
// Alerts are recorded when the last event was, in each run.
const log = await openLog(natsStore({ ...settings, clock: () => 0 }))
const running = runRules(log, rulesToKill(rules), { startAt: 'start', wait: new AbortController().signal })
process.once('message', async () => {
  await running.stop()
  await log.close()
  process.disconnect()
})
