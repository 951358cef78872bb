import { describe, expect, it } from 'vitest'
import { corpusOf, folderOf, write } from '../corpus/folder.ts'
import { startMonitorsOver, summaries } from './service.ts'

const CHANGELOG = '# tidewatch: changes\n\n## 4.2.0 (2026-02-11)\n\n- The option `settle` waits.\n'
const FOLDER = {
  'libraries/tidewatch/README.md':
    '# tidewatch\n\ntidewatch reports changed files. It needs Node 18 or later.',
  'libraries/tidewatch/CHANGELOG.md': CHANGELOG,
  'libraries/grainstore/README.md': '# grainstore\n\ngrainstore keeps records.',
  'libraries/grainstore/CHANGELOG.md': '# grainstore: changes\n\n## 1.0.0\n\n- The first version.\n',
  'notes/weekly.md': '# Weekly notes\n\nThe plants need water.\n',
  'people/team.md': '# The team\n\n- Ingrid leads the group.\n',
}

/** Text below the first heading of a document. */
function below(document: string, text: string): string {
  return document.replace('\n\n', `\n\n${text}\n\n`)
}

async function watch(query: string, files: Readonly<Record<string, string>> = FOLDER) {
  const docs = await folderOf(files)
  const corpus = await corpusOf({}, { folders: [docs] })
  const { create, events, trigger, page } = await startMonitorsOver(corpus)
  const id = await create({ type: 'event_stream', frequency: '1d', settings: { query } })
  return {
    /** Changes documents, and returns what the monitor then reports. */
    async reports(changed: Readonly<Record<string, string>>): Promise<unknown[]> {
      await write(docs, changed)
      await trigger(id)
      const all = await events(id)
      const previous = all.findIndex(({ event_type }, index) => index > 0 && event_type === 'completion')
      return summaries(all.slice(0, all[0]?.event_type === 'completion' ? 1 : previous)).filter(
        (summary) => summary !== 'completion',
      )
    },
    warnings: async () => (await page(id, 'include_completions=true&limit=1')).warnings ?? [],
  }
}

const release = (version: string, line: string) => `## ${version} (2026-03-01)\n\n- ${line}`

describe('a monitor with a query in natural language', () => {
  it('reports new versions of its subject', async () => {
    const { reports } = await watch('new versions of tidewatch')

    const found = await reports({
      'libraries/tidewatch/CHANGELOG.md': below(CHANGELOG, release('4.3.0', 'Network disks are polled.')),
    })

    expect(found).toEqual([expect.stringContaining('4.3.0')])
  })

  it.each([
    [
      'a version of another subject',
      'libraries/grainstore/CHANGELOG.md',
      '# grainstore: changes\n\n## 1.1.0\n\n- New.',
    ],
    ['a version in passing', 'notes/weekly.md', '# Weekly notes\n\nTomasz showed tidewatch 4.2.0.'],
    ['white space', 'libraries/tidewatch/CHANGELOG.md', CHANGELOG.replaceAll('\n\n', '\n\n\n')],
    ['another entry of an old version', 'libraries/tidewatch/CHANGELOG.md', `${CHANGELOG}- And it stops.\n`],
  ])('does not report as a new version: %s', async (_, path, text) => {
    const { reports } = await watch('new versions of tidewatch')

    expect(await reports({ [path]: text })).toEqual([])
  })

  it('reports security fixes, and no other changes of its subject', async () => {
    const { reports } = await watch('security fixes in tidewatch')
    const first = below(CHANGELOG, release('4.2.1', 'Fixed a leak of handles.'))
    const second = below(first, release('4.2.2', 'A link could leave the folder (CVE-2026-10417).'))

    expect(await reports({ 'libraries/tidewatch/CHANGELOG.md': first })).toEqual([])
    expect(await reports({ 'libraries/tidewatch/CHANGELOG.md': second })).toEqual([
      expect.stringContaining('CVE-2026-10417'),
    ])
  })

  it('takes a topic from the heading above the new statement', async () => {
    const changelog = `${CHANGELOG}\n### Security\n\n- The first entry.\n`
    const { reports } = await watch('security fixes in tidewatch', {
      ...FOLDER,
      'libraries/tidewatch/CHANGELOG.md': changelog,
    })

    const found = await reports({ 'libraries/tidewatch/CHANGELOG.md': `${changelog}- Links are resolved.\n` })

    expect(found).toEqual([expect.stringContaining('Links are resolved')])
  })

  it('compares the new statement with the topic, and not the old ones beside it', async () => {
    const joined = '# The team\n\n- Ingrid leads the group.\n- Priya joined the team.\n'
    const { reports } = await watch('who joined the team')

    expect(await reports({ 'people/team.md': joined })).toHaveLength(1)
    expect(await reports({ 'people/team.md': `${joined}- Tomasz draws the pictures.\n` })).toEqual([])
  })

  it('takes every new statement of a subject that is named without a topic', async () => {
    const { reports } = await watch('what is new in the weekly notes')

    expect(await reports({ 'notes/weekly.md': '# Weekly notes\n\nThe lamps were replaced.\n' })).toHaveLength(
      1,
    )
    expect(await reports({ 'people/team.md': '# The team\n\n- Ingrid reads the weekly notes.\n' })).toEqual(
      [],
    )
  })

  it('compares words where it names no subject of the documents', async () => {
    const { reports } = await watch('announcements about electric ferries')

    expect(
      await reports({ 'notes/weekly.md': '# Weekly notes\n\nThe electric ferry sails in May.\n' }),
    ).toHaveLength(1)
    expect(
      await reports({ 'notes/weekly.md': '# Weekly notes\n\nThe electric kettle is broken.\n' }),
    ).toEqual([])
  })

  it('does not report again what was removed and restored', async () => {
    const { reports } = await watch('new versions of tidewatch')
    const changed = below(CHANGELOG, release('4.3.0', 'Network disks are polled.'))

    expect(await reports({ 'libraries/tidewatch/CHANGELOG.md': changed })).toHaveLength(1)
    expect(await reports({ 'libraries/tidewatch/CHANGELOG.md': CHANGELOG })).toEqual([])
    expect(await reports({ 'libraries/tidewatch/CHANGELOG.md': changed })).toEqual([])
  })

  it('warns while no document is about it, and reports the first one', async () => {
    const { reports, warnings } = await watch('new versions of chokidar')
    expect(await warnings()).toMatchObject([
      { type: 'warning', message: expect.stringContaining('No document') },
    ])

    const found = await reports({
      'libraries/chokidar/README.md': '# chokidar\n\nchokidar watches files.',
      'libraries/chokidar/CHANGELOG.md': '# Changes\n\n## 5.0.0 (2026-03-01)\n\n- Faster.',
    })

    expect(found).toEqual([expect.stringContaining('5.0.0')])
    expect(await warnings()).toEqual([])
  })

  it('reports a member of a manifest when it states something else, not when another one follows it', async () => {
    const manifest = (fields: object) => JSON.stringify({ name: 'kelp', ...fields }, null, 2)
    const file = 'kelp/package.json'
    const { reports } = await watch('changes of the licence of kelp', {
      [file]: manifest({ license: 'MIT' }),
    })

    expect(await reports({ [file]: manifest({ license: 'MIT', homepage: 'https://kelp.example' }) })).toEqual(
      [],
    )
    expect(await reports({ [file]: manifest({ license: 'ISC', homepage: 'https://kelp.example' }) })).toEqual(
      [expect.stringContaining('"license": "ISC"')],
    )
  })

  it('reports the earlier statements that it is about with include_backfill, and no others', async () => {
    const corpus = await corpusOf({}, { folders: [await folderOf(FOLDER)] })
    const { create, events } = await startMonitorsOver(corpus)

    const id = await create({
      type: 'event_stream',
      frequency: '1d',
      settings: { query: 'new versions of tidewatch', include_backfill: true },
    })

    expect(summaries(await events(id))).toEqual([expect.stringContaining('4.2.0')])
  })
})

describe('a monitor with a query of plain words', () => {
  it('reports passages that have all of them, although the new statement has none', async () => {
    const { reports } = await watch('solid battery', { 'a.md': 'A solid battery.' })

    expect(await reports({ 'a.md': 'A solid battery. It lasts for years.' })).toHaveLength(1)
  })

  it('reports what a topic of it is about, too', async () => {
    const { reports } = await watch('tidewatch security fixes')

    const found = await reports({
      'libraries/tidewatch/CHANGELOG.md': below(CHANGELOG, release('4.2.2', 'Fixed CVE-2026-10417.')),
    })

    expect(found).toEqual([expect.stringContaining('CVE-2026-10417')])
  })
})
