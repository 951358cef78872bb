/**
 * A monitor and its webhooks as one stream: `watch` fetches the events that a webhook announces, and drops the duplicates of the
 * poll.
 */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { createResearchService } from 'rivulet/service'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import { firstValueFrom } from 'rxjs'

const docs = await mkdtemp(join(tmpdir(), 'rivulet-'))
const service = await createResearchService({ docs })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })

const receiver = createWebhookReceiver({ secrets: service.webhookSecret })
const endpoint = createServer(nodeListener(receiver)).listen(0, '127.0.0.1')
await once(endpoint, 'listening')
const address = endpoint.address()
if (address === null || typeof address === 'string') throw new Error('the endpoint has no port')

const monitor = await client.monitors.create({
  type: 'event_stream',
  frequency: '1h',
  settings: { query: 'solid state battery' },
  webhook: { url: `http://127.0.0.1:${address.port}/`, event_types: ['monitor.event.detected'] },
})
const events = client.watch({ monitors: [monitor.monitor_id], webhooks: receiver })
const first = firstValueFrom(events.pipe(ofType('monitor.event_stream')))

await writeFile(join(docs, 'news.md'), '# News\n\nA solid state battery went into series production today.\n')
await client.monitors.trigger(monitor.monitor_id)
const { via, data } = await first
console.log(`${via}: ${JSON.stringify(data.output.content)}`)

endpoint.close()
receiver.close()
await service.close()
await rm(docs, { recursive: true })
