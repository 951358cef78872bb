import type { Page } from './page.ts'

/** A page of an earlier request. */
export interface CachedPage {
  readonly page: Page
  /** When it was fetched, Unix ms. */
  readonly fetchedAt: number
}

/** Keeps pages in memory, up to a number of characters. The page that was not used for the longest time is removed first. */
export class PageCache {
  readonly #maxCharacters: number
  /** The pages, in order of use. */
  readonly #pages = new Map<string, CachedPage>()
  #characters = 0

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

  get(url: string): CachedPage | undefined {
    const cached = this.#remove(url)
    if (cached !== undefined) this.#add(url, cached)
    return cached
  }

  put(url: string, cached: CachedPage): void {
    this.#remove(url)
    if (sizeOf(url, cached) > this.#maxCharacters) return
    this.#add(url, cached)
    for (const oldest of this.#pages.keys()) {
      if (this.#characters <= this.#maxCharacters) return
      this.#remove(oldest)
    }
  }

  #add(url: string, cached: CachedPage): void {
    this.#pages.set(url, cached)
    this.#characters += sizeOf(url, cached)
  }

  #remove(url: string): CachedPage | undefined {
    const cached = this.#pages.get(url)
    if (cached === undefined) return undefined
    this.#pages.delete(url)
    this.#characters -= sizeOf(url, cached)
    return cached
  }
}

function sizeOf(url: string, { page }: CachedPage): number {
  return url.length + page.text.length + (page.title?.length ?? 0)
}
