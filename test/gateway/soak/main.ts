/**
 * Kills a gateway while a browser's store follows it: `npm run gateway-soak -- --events 20000 --kills 10 --seed 1 --json`.
 *
 * With `--keep 200`, retention deletes all but the last 200 entries meanwhile; with
 * `--overtakes` too, it does not wait for the views. Prints a `GatewaySoakResult`. Exits with 1 and the reasons when the browser does not have what the log has, or when a part of the
 * plan did not happen.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { complaintsAbout, soakGateway } from './soak.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '20000' },
    kills: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'string' },
    overtakes: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'rivulet-gateway-soak-'))
try {
  const result = await soakGateway({
    file: join(folder, 'log.db'),
    events: Number(values.events),
    kills: Number(values.kills),
    seed: Number(values.seed),
    overtakes: values.overtakes,
    ...(values.keep !== undefined && { keep: Number(values.keep) }),
    onStep: (text) => process.stderr.write(`${text}\n`),
  })
  for (const complaint of complaintsAbout(result)) {
    process.stderr.write(`gateway-soak: ${complaint}\n`)
    process.exitCode = 1
  }
  const text = values.json ? JSON.stringify({ gateway_soak: result }) : JSON.stringify(result, undefined, 2)
  process.stdout.write(`${text}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
