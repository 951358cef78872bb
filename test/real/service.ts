import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createResearchService } from 'rivulet/service'
import { onTestFinished } from 'vitest'

/** What `pipeline.js` has to report of a service of {@link startService}. */
export const EXPECTED = {
  found: true,
  answers: ['about brooks', 'about lakes', 'about ponds', 'about rivers', 'about seas'],
  reconnected: true,
  executed: ['about brooks', 'about rivers'],
  refused: 'NotFoundError',
}

/**
 * The embedded service on Node, which cuts the first stream that is read from it.
 *
 * @param released When its runs may end. Default at once.
 */
export async function startService(released?: Promise<void>) {
  const docs = await mkdtemp(join(tmpdir(), 'rivulet-real-'))
  await writeFile(join(docs, 'rivers.md'), '# Rivers\n\nRivers run to the sea.\n')
  const service = await createResearchService({
    docs,
    processor: {
      run: async ({ input }) => {
        await released
        return { output: { type: 'text', content: `about ${String(input.input)}`, basis: [] } }
      },
    },
    faults: [{ kind: 'cut', after: 2, times: 1 }],
  })
  onTestFinished(async () => {
    await service.close()
    await rm(docs, { recursive: true })
  })
  return { service, baseUrl: await service.listen() }
}
