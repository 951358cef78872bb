import { relative, sep } from 'node:path'
import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkObject, checkText } from '../../protocol/check.ts'

/** A folder of documents. */
export interface DocumentFolder {
  /** Path of the folder. */
  readonly folder: string
  /**
   * The base URL of the folder, http or https: with `https://docs.example/guide`, the file `a/b.md` is cited as
   * `https://docs.example/guide/a/b.md`, and its host for `include_domains` and `exclude_domains` is `docs.example`. A URL
   * that a document states takes precedence. For nested folders, the innermost one with a site applies. Default: a `file:` URL, or the URL
   * of the site whose domain is the name of the first folder.
   */
  readonly site?: string
}

/** A folder whose documents have URLs on a site. */
export interface Site {
  /** Absolute path of the folder. */
  readonly folder: string
  /** The URL of the folder; ends with a slash. */
  readonly base: string
}

/**
 * Converts folders to objects.
 *
 * @throws ArgumentError for an invalid folder or base URL.
 */
export function checkFolders(
  argument: string,
  folders: readonly (string | DocumentFolder)[],
): DocumentFolder[] {
  return folders.map((entry: unknown, index): DocumentFolder => {
    if (typeof entry === 'string') {
      checkText(argument, entry)
      return { folder: entry }
    }
    const name = `${argument}[${index}]`
    checkObject(name, entry)
    const { folder, site } = entry
    checkText(`${name}.folder`, folder)
    return site === undefined ? { folder } : { folder, site: baseUrl(`${name}.site`, site) }
  })
}

/** The URL of a file on its innermost site. `path` is absolute. */
export function addressOf(sites: readonly Site[], path: string): string | undefined {
  const [innermost] = sites
    .filter(({ folder }) => path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    .toSorted((a, b) => b.folder.length - a.folder.length)
  if (innermost === undefined) return undefined
  const below = relative(innermost.folder, path).split(sep)
  return new URL(innermost.base + below.map(encodeURIComponent).join('/')).href
}

/** A base URL that ends with a slash. */
function baseUrl(argument: string, site: unknown): string {
  const url = typeof site === 'string' && URL.canParse(site) ? new URL(site) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    [url.username, url.password, url.search, url.hash].some((part) => part !== '')
  ) {
    // The message omits the value, which may contain a password.
    const expected = 'an http or https URL without credentials, query and fragment'
    throw new ArgumentError(argument, expected, hidden(site))
  }
  return url.href.endsWith('/') ? url.href : `${url.href}/`
}
