/**
 * Kills a service with all areas active: `npm run service-kills -- --kills 20 --seed 1`.
 *
 * Prints a `KillResult`, and each kill to stderr, unless `--json` is given. Exits with 1 if something that was acknowledged is lost or doubled, or has not ended.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killService } from './kills.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'rivulet-service-kills-'))
try {
  const result = await killService({
    folder,
    kills: Number(values.kills),
    seed: Number(values.seed),
    onStep: (text) => values.json || process.stderr.write(`${text}\n`),
  })
  process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`)
  if (result.problems.length > 0) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
