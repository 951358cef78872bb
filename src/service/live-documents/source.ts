import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkText } from '../../protocol/check.ts'

/** Sources of documents, by kind. */
export interface Sources {
  readonly folders: readonly string[]
  /** Absolute URLs without a fragment. */
  readonly urls: readonly string[]
}

/**
 * Divides sources into folders and URLs.
 *
 * @throws ArgumentError for a URL that is not http or https, or has credentials. The message omits it.
 */
export function checkSources(argument: string, sources: unknown): Sources {
  if (!Array.isArray(sources)) throw new ArgumentError(argument, 'an array', hidden(sources))
  const folders = new Set<string>()
  const urls = new Set<string>()
  for (const [index, source] of sources.entries()) {
    const name = `${argument}[${index}]`
    checkText(name, source)
    if (isUrl(source)) urls.add(checkedUrl(name, source))
    else folders.add(source)
  }
  return { folders: [...folders], urls: [...urls] }
}

/** Whether a source is a URL and not the path of a folder. A drive letter is no scheme. */
function isUrl(source: string): boolean {
  return /^[a-z][a-z0-9+.-]+:/i.test(source)
}

function checkedUrl(argument: string, source: string): string {
  const url = URL.canParse(source) ? new URL(source) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new ArgumentError(argument, 'a folder, or an http or https URL without credentials', hidden(source))
  }
  url.hash = ''
  return url.href
}

/** A URL for logs and errors: without its query, which may have a token. */
export function shownUrl(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return `${origin}${pathname}${search === '' ? '' : '?…'}`
}
