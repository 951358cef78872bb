import { describe, expect, it } from 'vitest'
import { PageCache } from '../../../src/service/extract/page-cache.ts'

const page = (length: number) => ({
  page: { title: null, publishDate: null, text: 'x'.repeat(length) },
  fetchedAt: 0,
})

/** The keys of a cache among these. */
const kept = (cache: PageCache, ...urls: string[]) => urls.filter((url) => cache.get(url) !== undefined)

describe('the pages that are kept', () => {
  it('have at most a number of characters, and the one that was not used for longest goes first', () => {
    const cache = new PageCache(30)
    cache.put('a', page(9))
    cache.put('b', page(9))
    cache.put('c', page(9))
    cache.get('a')

    cache.put('d', page(9))

    expect(kept(cache, 'a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  it('replace an earlier page of the same URL, also one of another length', () => {
    const cache = new PageCache(30)
    cache.put('a', page(20))
    cache.put('b', page(5))

    cache.put('a', page(2))
    cache.put('c', page(19))

    expect(cache.get('a')?.page.text).toBe('xx')
    expect(kept(cache, 'b', 'c')).toEqual(['b', 'c'])
  })

  it('do not give way to a page that is too long to be kept', () => {
    const cache = new PageCache(30)
    cache.put('a', page(20))

    cache.put('b', page(100))

    expect(kept(cache, 'a', 'b')).toEqual(['a'])
  })
})
