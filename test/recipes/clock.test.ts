import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { createResearchService, ManualClock } from 'rivulet/service'
import { firstValueFrom } from 'rxjs'
import { ofType } from 'rivulet/operators'
import { expect, it } from 'vitest'

const DAY = 86_400_000

it('gets what a daily monitor finds on the second day', async () => {
  const docs = await mkdtemp(join(tmpdir(), 'documents-'))
  const clock = new ManualClock()
  await using service = await createResearchService({ docs, clock })
  const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
  const settings = { query: 'solid state battery' }
  const { monitor_id } = await client.monitors.create({ type: 'event_stream', frequency: '1d', settings })
  const changes = client.monitors
    .follow(monitor_id, { pollInterval: 20 })
    .pipe(ofType('monitor.event_stream'))
  const found = firstValueFrom(changes)

  await writeFile(
    join(docs, 'news.md'),
    '# News\n\nA solid state battery went into series production today.\n',
  )
  clock.advance(DAY)

  expect((await found).data.output.content).toContain('series production')
  await rm(docs, { recursive: true })
})
