/**
 * A gateway with many clients, some of which never read:
 * `npm run gateway-clients -- --clients 500 --stalled 50 --events 300 --bytes 50000 --interval 100`.
 *
 * With `--semi-space 16`, the gateway's process has `--max-semi-space-size=16`. Prints a `CrowdResult` as JSON. Exits with 1 and the reasons when a promise is broken.
 */
import { parseArgs } from 'node:util'
import { complaintsAbout, crowd } from './crowd.ts'

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '500' },
    stalled: { type: 'string', default: '50' },
    events: { type: 'string', default: '300' },
    bytes: { type: 'string', default: '50000' },
    interval: { type: 'string', default: '100' },
    'semi-space': { type: 'string' },
  },
})
const result = await crowd({
  clients: Number(values.clients),
  stalled: Number(values.stalled),
  events: Number(values.events),
  bytes: Number(values.bytes),
  interval: Number(values.interval),
  semiSpace: values['semi-space'] === undefined ? undefined : Number(values['semi-space']),
})
for (const complaint of complaintsAbout(result)) {
  process.stderr.write(`gateway-clients: ${complaint}\n`)
  process.exitCode = 1
}
process.stdout.write(`${JSON.stringify({ gateway_clients: result })}\n`)
