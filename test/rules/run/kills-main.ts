/**
 * Kills the process of rules while events are recorded: `npm run rule-kills -- --events 20000 --kills 30 --rules 100 --seed 1`.
 *
 * Prints a `KillResult`. Exits with 1 where the alerts are not those of a run without a kill.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killRules } from './kills.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '20000' },
    kills: { type: 'string', default: '30' },
    rules: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'rivulet-rule-kills-'))
try {
  const result = await killRules({
    file: join(folder, 'log.db'),
    events: Number(values.events),
    kills: Number(values.kills),
    rules: Number(values.rules),
    seed: Number(values.seed),
    onStep: (text) => process.stderr.write(`${text}\n`),
  })
  process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`)
  if (!result.same_order || result.doubled > 0) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
