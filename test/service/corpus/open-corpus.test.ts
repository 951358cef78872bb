import { rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Corpus } from '../../../src/service/corpus/corpus.ts'
import { openCorpus } from '../../../src/service/corpus/open-corpus.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { corpusOf, type Files, folderOf, write } from './folder.ts'

async function open(folder: string, options = {}): Promise<Corpus> {
  const database = openDatabase(':memory:')
  onTestFinished(() => database.close())
  const corpus = await openCorpus(database, { folders: [folder], watch: false, ...options })
  onTestFinished(() => corpus.close())
  return corpus
}

const texts = (corpus: Corpus, query: string) =>
  corpus.passages({ queries: [query], limit: 50 }).map(({ text }) => text)

describe('openCorpus', () => {
  it('indexes the documents of its folders and their subfolders', async () => {
    const corpus = await corpusOf({
      'a.md': 'word a',
      'b/c/d.html': '<p>word d</p>',
      'e.txt': 'word e',
      'f.json': '"word f"',
    })
    expect(corpus.size).toBe(3)
    expect(texts(corpus, 'word').toSorted()).toEqual(['word a', 'word d', 'word e'])
  })

  it('skips hidden folders and node_modules, unless enter includes them', async () => {
    const files = { '.git/a.md': 'word', 'node_modules/b/c.md': 'word', 'd.md': 'word' }
    expect((await corpusOf(files)).size).toBe(1)
    expect((await corpusOf(files, { enter: () => true })).size).toBe(3)
  })

  it('calls include with the path within the folder', async () => {
    const files = { 'x/LICENSE': 'word', 'x/y.md': 'word', '@s/x/LICENSE': 'word' }
    const asked: string[] = []
    const include = (path: string) => asked.push(path) > 0 && path.endsWith('LICENSE')
    const corpus = await corpusOf(files, { include })
    expect(corpus.size).toBe(2)
    expect(asked.toSorted()).toEqual(['@s/x/LICENSE', 'x/LICENSE', 'x/y.md'])
  })

  it('skips files that are too large, binary or not UTF-8', async () => {
    const folder = await folderOf({
      'large.txt': Buffer.alloc(5 * 2 ** 20 + 1, 'word '),
      'binary.txt': Buffer.from([0, 1, 2]),
      'latin.txt': Buffer.from('caf\xe9', 'latin1'),
      'fine.txt': 'word',
    })
    expect((await open(folder)).size).toBe(1)
  })

  it('does not follow symbolic links', async () => {
    const elsewhere = await folderOf({ 'a.md': 'word' })
    const folder = await folderOf({ 'b.md': 'word' })
    await symlink(elsewhere, join(folder, 'link'))
    await symlink(join(elsewhere, 'a.md'), join(folder, 'link.md'))
    await symlink(folder, join(folder, 'loop'))
    expect((await open(folder)).size).toBe(1)
  })

  it('names a folder that is missing or not a folder', async () => {
    const folder = await folderOf({ 'a.md': 'word' })
    await expect(open(join(folder, 'missing'))).rejects.toThrow(
      `there is no folder ${join(folder, 'missing')}`,
    )
    await expect(open(join(folder, 'a.md'))).rejects.toThrow('is not a folder')
  })

  it('refuses wrong options at the call', () => {
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    expect(() => openCorpus(database, { folders: [] })).toThrow('folders must be')
    expect(() => openCorpus(database, { folders: [' '] })).toThrow('folders must be')
    expect(() => openCorpus(database, { folders: ['.'], watch: 'yes' as unknown as boolean })).toThrow(
      'watch must be',
    )
    expect(() => openCorpus(database, { folders: ['.'], include: /md/ as unknown as () => boolean })).toThrow(
      'include must be',
    )
  })

  it('shows the first of two documents with the same URL, and the second when the first is removed', async () => {
    const matter = '---\nurl: https://example.org/same\n---\n'
    const folder = await folderOf({ 'a.md': `${matter}word first`, 'b.md': `${matter}word second` })
    const corpus = await open(folder)
    expect(corpus.size).toBe(1)
    expect(texts(corpus, 'word')).toEqual(['word first'])
    expect(texts(corpus, 'second')).toEqual([])
    await rm(join(folder, 'a.md'))
    await corpus.settled()
    expect(corpus.document('https://example.org/same')?.text).toBe('word second')
    expect(texts(corpus, 'word')).toEqual(['word second'])
  })

  it('returns the text of a document unchanged', async () => {
    const text = `# Title\r\n\r\n${'A sentence of some length. '.repeat(120)}\n\n\n\`\`\`js\ncode()\n\`\`\`\n\nthe end`
    const corpus = await corpusOf({ 'example.org/a.md': `\n${text}\n` })
    expect(corpus.document('https://example.org/a.md')).toMatchObject({ title: 'Title', text })
    expect(corpus.document('https://example.org/b.md')).toBeUndefined()
  })
})

describe('settled', () => {
  it('resolves when earlier additions, changes and removals are in the index', async () => {
    const folder = await folderOf({
      'stays.md': 'word stays',
      'changes.md': 'word before',
      'goes.md': 'word goes',
    })
    const corpus = await open(folder)
    await write(folder, { 'new/comes.md': 'word comes', 'changes.md': 'word after!' })
    await rm(join(folder, 'goes.md'))
    await corpus.settled()
    expect(texts(corpus, 'word').toSorted()).toEqual(['word after!', 'word comes', 'word stays'])
    expect(corpus.size).toBe(3)
  })

  it('notices a change that keeps size and modification time', async () => {
    const folder = await folderOf({ 'a.md': 'word one' })
    const corpus = await open(folder)
    for (const text of ['word two', 'word six', 'word ten']) {
      await writeFile(join(folder, 'a.md'), text)
      await corpus.settled()
      expect(texts(corpus, 'word')).toEqual([text])
    }
  })

  it('notices a file that was renamed, and a folder that was removed', async () => {
    const folder = await folderOf({ 'x.example/a.md': 'word', 'y.example/b.md': 'word b' })
    const corpus = await open(folder)
    await rename(join(folder, 'x.example/a.md'), join(folder, 'x.example/c.md'))
    await rm(join(folder, 'y.example'), { recursive: true })
    await corpus.settled()
    expect(corpus.passages({ queries: ['word'], limit: 9 }).map(({ url }) => url)).toEqual([
      'https://x.example/c.md',
    ])
  })

  it('rejects and keeps the index while a folder of documents is missing', async () => {
    const folder = await folderOf({ 'docs/a.md': 'word' })
    const docs = join(folder, 'docs')
    const corpus = await open(docs)

    await rename(docs, join(folder, 'elsewhere'))
    await expect(corpus.settled()).rejects.toThrow(
      `the folder ${docs} cannot be read: there is no such folder`,
    )
    expect(texts(corpus, 'word')).toEqual(['word'])

    await rename(join(folder, 'elsewhere'), docs)
    await write(docs, { 'b.md': 'word too' })
    await corpus.settled()
    expect(texts(corpus, 'word').toSorted()).toEqual(['word', 'word too'])
  })

  it('shares one scan among concurrent calls', async () => {
    const folder = await folderOf({})
    const corpus = await open(folder)
    await write(folder, { 'a.md': 'word' })
    await Promise.all([corpus.settled(), corpus.settled(), corpus.settled()])
    expect(corpus.size).toBe(1)
  })
})

describe('a search while the index is updated', () => {
  it('shows each document with the title that belongs to its text', async () => {
    // More than a batch, so that searches run between the batches.
    const files = (version: number): Files =>
      Object.fromEntries(
        Array.from({ length: 200 }, (_, number) => [
          `${number}.md`,
          `# Version ${version}\n\nword ${number} of version ${version}`,
        ]),
      )
    const folder = await folderOf(files(1))
    const corpus = await open(folder)
    const versions = () =>
      corpus
        .search({ queries: ['word'], limit: 200 }, { charactersPerResult: 100, excerptsPerResult: 1 })
        .map(({ title, excerpts }) => [title, `Version ${excerpts[0]?.at(-1)}`] as const)
    expect(versions()).toHaveLength(200)
    await write(folder, files(2))

    const update = { isRunning: true }
    const settled = corpus.settled().finally(() => (update.isRunning = false))
    const seen = new Set<string>()
    while (update.isRunning) {
      for (const [title, ofText] of versions()) {
        expect(title).toBe(ofText)
        seen.add(title)
      }
      await setImmediate()
    }
    await settled
    // The searches ran before, during and after the change of some document.
    expect(seen).toEqual(new Set(['Version 1', 'Version 2']))
  })
})

describe('a corpus that is opened again', () => {
  it('does not read unchanged files', async () => {
    const folder = await folderOf({ 'a.md': 'word a', 'b.md': 'word b' })
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    const first = await openCorpus(database, { folders: [folder], watch: false })
    await first.close()
    // Sets the time of reading long after the modification.
    database.exec('UPDATE corpus_files SET read_at = read_at + 1000')
    const changesOf = () => Number(database.prepare('SELECT total_changes() AS changes').get()?.['changes'])
    const before = changesOf()
    const second = await openCorpus(database, { folders: [folder], watch: false })
    expect(changesOf()).toBe(before)
    expect(texts(second, 'word')).toHaveLength(2)
    await second.close()
  })

  it.each([2, 200])('writes the rows of a changed file alone, of %i files', async (size) => {
    const folder = await folderOf(
      Object.fromEntries(Array.from({ length: size }, (_, number) => [`${number}.md`, `word ${number}`])),
    )
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    await (await openCorpus(database, { folders: [folder], watch: false })).close()
    // Sets the time of reading long after the modification.
    database.exec('UPDATE corpus_files SET read_at = read_at + 1000')
    await writeFile(join(folder, '1.md'), 'word changed')
    database.exec(`
      CREATE TABLE written (document INTEGER);
      CREATE TRIGGER passage_written AFTER INSERT ON corpus_passages BEGIN INSERT INTO written VALUES (new.id >> 22); END;
      CREATE TRIGGER passage_deleted AFTER DELETE ON corpus_passages BEGIN INSERT INTO written VALUES (old.id >> 22); END;
      CREATE TRIGGER file_written AFTER UPDATE ON corpus_files BEGIN INSERT INTO written VALUES (new.id); END;`)
    await (await openCorpus(database, { folders: [folder], watch: false })).close()

    const [changed] = database.prepare('SELECT id FROM corpus_files WHERE path LIKE ?').all('%/1.md')
    expect(database.prepare('SELECT DISTINCT document AS id FROM written').all()).toEqual([changed])
  })

  it('finds changes made while it was closed, and drops files outside of its folders', async () => {
    const [one, two] = [
      await folderOf({ 'a.md': 'word a', 'b.md': 'word b' }),
      await folderOf({ 'c.md': 'word c' }),
    ]
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    await (await openCorpus(database, { folders: [one, two], watch: false })).close()
    await writeFile(join(one, 'a.md'), 'word changed')
    await utimes(join(one, 'a.md'), 1, 1)
    const corpus = await openCorpus(database, { folders: [one], watch: false })
    expect(texts(corpus, 'word').toSorted()).toEqual(['word b', 'word changed'])
    await corpus.close()
  })
})

describe('a corpus that watches', () => {
  it.each<[string, (folder: string) => Promise<unknown>, string[]]>([
    ['added', (folder) => write(folder, { 'new/b.md': 'word added' }), ['word added', 'word old']],
    ['changed', (folder) => write(folder, { 'a.md': 'word changed' }), ['word changed']],
    ['removed', (folder) => rm(join(folder, 'a.md')), []],
  ])('notifies listeners of a file that was %s, once it is in the index', async (_, change, expected) => {
    const folder = await folderOf({ 'a.md': 'word old' })
    const corpus = await open(folder, { watch: true })
    const seen = new Promise<void>((resolve) => {
      corpus.onChange(() => {
        if (texts(corpus, 'word').toSorted().join() === expected.join()) resolve()
      })
    })
    await change(folder)
    await expect(seen).resolves.toBeUndefined()
  })

  it('notifies no listener after it is closed', async () => {
    const folder = await folderOf({ 'a.md': 'word' })
    const corpus = await open(folder, { watch: true })
    let calls = 0
    corpus.onChange(() => (calls += 1))
    await corpus.close()
    await write(folder, { 'b.md': 'word' } satisfies Files)
    await corpus.settled()
    expect([calls, corpus.size]).toEqual([0, 1])
  })

  it('does not notify a removed listener', async () => {
    const folder = await folderOf({})
    const corpus = await open(folder)
    let calls = 0
    const stop = corpus.onChange(() => (calls += 1))
    await write(folder, { 'a.md': 'word' })
    await corpus.settled()
    stop()
    await write(folder, { 'b.md': 'word' })
    await corpus.settled()
    expect(calls).toBe(1)
  })
})

describe('a corpus with sites', () => {
  const urls = (corpus: Corpus, policy = {}) =>
    corpus
      .passages({ queries: ['word'], limit: 50, sourcePolicy: policy })
      .map(({ url }) => url)
      .toSorted()

  it('gives documents their encoded URLs on the site, and filters them by domain', async () => {
    const [docs, other] = [
      await folderOf({ 'a b/c#d?.md': 'word one', 'e.md': '---\nurl: https://own.example/e\n---\nword two' }),
      await folderOf({ 'f.md': 'word three' }),
    ]
    const corpus = await corpusOf(
      {},
      { folders: [{ folder: docs, site: 'https://docs.example/guide' }, other] },
    )
    const published = 'https://docs.example/guide/a%20b/c%23d%3F.md'
    expect(urls(corpus)).toEqual([
      pathToFileURL(join(other, 'f.md')).href,
      published,
      'https://own.example/e',
    ])
    expect(urls(corpus, { include_domains: ['docs.example'] })).toEqual([published])
    expect(urls(corpus, { exclude_domains: ['example'] })).toEqual([pathToFileURL(join(other, 'f.md')).href])
  })

  it('uses the innermost folder with a site, in any order', async () => {
    const docs = await folderOf({ 'a.md': 'word a', 'api/b.md': 'word b', 'apis/c.md': 'word c' })
    const outer = { folder: docs, site: 'https://docs.example/' }
    const inner = { folder: join(docs, 'api'), site: 'http://api.example/v1/' }
    for (const folders of [
      [outer, inner],
      [inner, outer],
    ]) {
      expect(urls(await corpusOf({}, { folders }))).toEqual([
        'http://api.example/v1/b.md',
        'https://docs.example/a.md',
        'https://docs.example/apis/c.md',
      ])
    }
  })

  it('prefers the site to a domain as the name of a folder', async () => {
    const docs = await folderOf({ 'x.example/a.md': 'word' })
    const corpus = await corpusOf({}, { folders: [{ folder: docs, site: 'https://docs.example' }] })
    expect(urls(corpus)).toEqual(['https://docs.example/x.example/a.md'])
  })

  it('updates the URLs of an existing index for another site', async () => {
    const docs = await folderOf({ 'a.md': 'word' })
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    for (const site of ['https://one.example', 'https://two.example']) {
      const corpus = await openCorpus(database, { folders: [{ folder: docs, site }], watch: false })
      expect(urls(corpus)).toEqual([`${site}/a.md`])
      // Sets the time of reading long after the modification.
      database.exec('UPDATE corpus_files SET read_at = read_at + 1000')
      await corpus.close()
    }
  })

  it.each([
    ['https://user:pass@docs.example', 'a string (not shown)'],
    ['ftp://docs.example', 'a string (not shown)'],
    ['', 'an empty string'],
    [1, 'a number'],
  ])('refuses the site %j, and shows it as %s', async (site, shown) => {
    const folder = await folderOf({})
    await expect(corpusOf({}, { folders: [{ folder, site } as never] })).rejects.toThrow(
      `site must be an http or https URL without credentials, query and fragment, got ${shown}`,
    )
  })

  it('refuses a folder that has two sites', async () => {
    const docs = await folderOf({})
    const folders = ['https://one.example', 'https://two.example'].map((site) => ({ folder: docs, site }))
    await expect(corpusOf({}, { folders })).rejects.toThrow('given twice with a site')
  })
})
