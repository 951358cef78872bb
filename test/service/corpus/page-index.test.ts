import { expect, it, onTestFinished, vi } from 'vitest'
import { openCorpus } from '../../../src/service/corpus/open-corpus.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { folderOf } from './folder.ts'

const URL_OF_PAGE = 'https://example.org/tides'

function page(text: string, url = URL_OF_PAGE) {
  return { url, title: 'Tides', publishDate: null, kind: 'page' as const, text }
}

async function open(folders: readonly string[] = [], database = openDatabase(':memory:')) {
  const corpus = await openCorpus(database, { folders, watch: false, pages: true })
  onTestFinished(async () => {
    await corpus.close()
    if (database.isOpen) database.close()
  })
  return corpus
}

it('has pages beside files, and keeps them when the folders are scanned', async () => {
  const corpus = await open([await folderOf({ 'a.md': 'word of a file' })])
  const listener = vi.fn<() => void>()
  corpus.onChange(listener)

  await corpus.pages.update((pages) => pages.put(URL_OF_PAGE, 'example.org/tides', page('word of a page')))
  await corpus.settled()

  expect(corpus.size).toBe(2)
  expect(corpus.document(URL_OF_PAGE)?.text).toBe('word of a page')
  expect(listener).toHaveBeenCalledTimes(1)
  expect(corpus.passages({ queries: ['word'], limit: 9 }).map(({ text }) => text)).toHaveLength(2)
})

it('reports no change for a page with the same content', async () => {
  const corpus = await open()
  await corpus.pages.update((pages) => pages.put(URL_OF_PAGE, 'example.org/tides', page('same')))
  const listener = vi.fn<() => void>()
  corpus.onChange(listener)

  await corpus.pages.update((pages) => pages.put(URL_OF_PAGE, 'example.org/tides', page('same')))

  expect(listener).not.toHaveBeenCalled()
})

it('shows one of two pages with the same URL, and the other when it is removed', async () => {
  const corpus = await open()
  await corpus.pages.update((pages) => {
    pages.put('https://example.org/a', 'example.org/a', page('first'))
    pages.put('https://example.org/b', 'example.org/b', page('second'))
  })
  expect([corpus.size, corpus.document(URL_OF_PAGE)?.text]).toEqual([1, 'first'])

  await corpus.pages.update((pages) => pages.remove('https://example.org/a'))

  expect([corpus.size, corpus.document(URL_OF_PAGE)?.text]).toEqual([1, 'second'])
})

it('changes nothing when an update fails, and rejects with its error', async () => {
  const corpus = await open()

  const update = corpus.pages.update((pages) => {
    pages.put(URL_OF_PAGE, 'example.org/tides', page('lost'))
    throw new Error('the update failed')
  })

  await expect(update).rejects.toThrow('the update failed')
  expect(corpus.size).toBe(0)
})

it('waits for the refresh of pages before it is settled', async () => {
  const corpus = await open()
  const steps: string[] = []
  corpus.pages.refreshBy(async () => {
    await corpus.pages.update((pages) => pages.put(URL_OF_PAGE, 'example.org/tides', page('new')))
    steps.push('refreshed')
  })

  await corpus.settled()
  steps.push(`settled with ${corpus.size}`)

  expect(steps).toEqual(['refreshed', 'settled with 1'])
})
