/** `npm run soak -- --events 20000 --kills 30 --seed 1 --json` */
import { parseArgs } from 'node:util'
import { soak } from './soak.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '20000' },
    kills: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const result = await soak({
  events: Number(values.events),
  kills: Number(values.kills),
  seed: Number(values.seed),
  onStep: (text) => process.stderr.write(`${text}\n`),
})
if (values.json) process.stdout.write(`${JSON.stringify({ soak: result })}\n`)
else
  for (const [name, value] of Object.entries(result))
    process.stdout.write(`${name.padEnd(16)} ${JSON.stringify(value)}\n`)
process.exitCode = result.lost + result.doubled_effects + result.checkpoint_ahead === 0 ? 0 : 1
