import { relative, sep } from 'node:path'
import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkObject, checkText } from '../../protocol/check.ts'

/** A folder of documents. */
export interface DocumentFolder {
  /** Its path. */
  readonly folder: string
  /**
   * The base URL that the folder is published under, http or https: with `https://docs.example/guide` the file `a/b.md`
   * in the folder is cited as `https://docs.example/guide/a/b.md`, and `include_domains` and `exclude_domains` know it by
   * the host `docs.example`. A document that states a URL of its own keeps that. Where folders lie within one another, the
   * innermost one with a site decides. Default: a file has its `file:` URL, or that of the site whose domain the first
   * folder on its path is named after.
   */
  readonly site?: string
}

/** A folder whose documents have their addresses on a site. */
export interface Site {
  /** Absolute path of the folder. */
  readonly folder: string
  /** The address of the folder; ends with a slash. */
  readonly base: string
}

/**
 * Folders of documents, each as an object.
 *
 * @throws ArgumentError for what is no folder, and for a site that is no base URL.
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

/** The address of a file, given by its absolute path, on the innermost of the sites that it belongs to. */
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
    // The value is not repeated: what is wrong with it may be the password in it.
    const expected = 'an http or https URL without credentials, query and fragment'
    throw new ArgumentError(argument, expected, hidden(site))
  }
  return url.href.endsWith('/') ? url.href : `${url.href}/`
}
