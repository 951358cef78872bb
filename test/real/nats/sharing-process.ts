/** Records monitors that other processes record too, each its share. It runs until it is asked to stop. */
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { natsStore } from '../../../src/log/nats/index.ts'

/** What it is started with. */
export interface SharingSettings {
  readonly servers: string
  readonly name: string
  readonly lease: number
  readonly owner: string
  readonly baseUrl: string
  readonly apiKey: string
  readonly monitors: readonly string[]
}

/** What it sends: the sources of each append, and why the recording has failed. */
export type SharingMessage = { readonly appended: readonly string[] } | { readonly failed: string }

const { monitors, baseUrl, apiKey, ...settings }: SharingSettings = JSON.parse(process.argv[2] ?? '')
const send = (message: SharingMessage) => process.send?.(message)
await using log = await openLog(natsStore(settings))
log.observe({
  async append(events, proceed) {
    const appended = await proceed()
    send({ appended: events.map(({ event }) => event.source) })
    return appended
  },
})
const recording = log.record({
  client: createClient({ baseUrl, apiKey, quotas: false }),
  monitors: monitors.map((id) => ({ id, pollInterval: 300 })),
  share: 'monitors',
  tick: Infinity,
})
process.on('message', () => void recording.stop().catch(() => {}))
try {
  await recording.done
} catch (error) {
  send({ failed: String(error) })
}
process.disconnect()
