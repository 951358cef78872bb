import { describe, expect, it, vi } from 'vitest'
import { DOCUMENTS, folderOf, rivulet, rivuletInRepository } from './command.ts'

// The demonstration has its own timeout.
vi.setConfig({ testTimeout: 60_000 })

describe('rivulet start', () => {
  it('prints everything on real documents as NDJSON, with nothing lost or doubled', async () => {
    const { code, stdout, stderr } = await rivuletInRepository(['start', '--json']).ended
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const { summary } = lines.at(-1)

    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(Object.keys(summary)).toEqual([
      'documents',
      'search_results',
      'runs_completed',
      'runs_failed',
      'monitor_events',
      'licences',
      'alerts',
      'webhooks_received',
      'duplicates_dropped',
      'reconnects',
      'lost',
      'doubled',
    ])
    expect(summary).toMatchObject({ runs_failed: 0, lost: 0, doubled: 0, alerts: { firing: 1, resolved: 1 } })
    expect(summary.documents).toBeGreaterThanOrEqual(100)
    expect(summary.monitor_events).toBeGreaterThanOrEqual(1)
    expect(summary.reconnects).toBeGreaterThanOrEqual(2)
    expect(summary.licences).toMatchObject({ MIT: expect.any(Number) })
    expect(summary.duplicates_dropped).toBeGreaterThanOrEqual(1)
    expect(summary.webhooks_received).toBeGreaterThanOrEqual(2 * summary.runs_completed)
    const runs = lines.filter(({ type }) => type === 'task_run.state')
    expect(runs).toHaveLength(summary.runs_completed)
    expect(runs.find(({ data }) => data.run.metadata.package === 'rxjs').data.output.content).toMatchObject({
      licence: expect.stringContaining('Apache'),
      install: expect.stringContaining('install'),
    })
  })

  it('prints text for a person, over any folder of documents', async () => {
    const docs = await folderOf(DOCUMENTS)
    const { code, stdout } = await rivulet(['start', '--docs', docs]).ended

    expect(code).toBe(0)
    expect(stdout).toMatch(/^ {4}2 documents, served at http:\/\/127\.0\.0\.1:\d+$/m)
    expect(stdout).toMatch(/The stream broke/)
    expect(stdout).toMatch(/ResearchRuns +The alert fires: \d+ runs are researched\./)
    expect(stdout).toMatch(/ResearchRuns +The alert is resolved/)
    expect(stdout).toMatch(/lost +0\n +doubled +0\n/)
  })

  it('keeps its log open in the browser with --dashboard, until it is interrupted', async () => {
    const docs = await folderOf(DOCUMENTS)
    const start = rivulet(['start', '--dashboard', '--json', '--docs', docs])
    const address = JSON.parse(await start.stdoutLine((line) => line.startsWith('{"dashboard"'))).dashboard
      .url
    await start.stdoutLine((line) => line.startsWith('{"summary"'))
    const [cookie = ''] = (await fetch(address)).headers.getSetCookie()[0]?.split(';') ?? []
    const page = await fetch(new URL('/', address), { headers: { cookie } })
    const status = await fetch(new URL('/status', address), { headers: { cookie } })
    const consumers = async () => {
      const { log } = await (await fetch(new URL('/status', address), { headers: { cookie } })).json()
      return log.readers.flatMap(({ kind, name }: Record<string, unknown>) =>
        kind === 'consumer' ? [name] : [],
      )
    }
    // The one that printed is over. It would be shown as one that falls behind.
    await expect.poll(consumers, { timeout: 20_000 }).toEqual(['audit'])
    const url = 'https://docs.example/missing.md'
    const missing = await fetch(new URL(`/document?url=${url}`, address), { headers: { cookie } })
    start.child.kill('SIGINT')
    const { code, stdout, stderr } = await start.ended

    expect(page.status).toBe(200)
    expect(await status.json()).toMatchObject({ can: { search: true, addRuns: true, documents: true } })
    expect(missing.status).toBe(404)
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^\{"summary"/)
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })
})
