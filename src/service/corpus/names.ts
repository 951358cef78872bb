/** Maximum number of folders that give a document their names, from the innermost. */
const MAX_FOLDERS = 16

/** A name as it is compared: lowercase, without white space around it. */
export function normalName(name: string): string {
  return name.trim().toLowerCase()
}

/**
 * The normal names of a document: its title, its file name (whole, without its extension, and up to its first dot), and the names
 * of its parent folders, each also with its scope (`@hono/node-server`). The parameter `place` is its path, from `/`.
 */
export function namesOf(place: string, title: string): Set<string> {
  const segments = place.split('/').slice(1)
  const file = normalName(segments.pop() ?? '')
  const names = [title, file, file.replace(/(?<=.)\.[^.]*$/, ''), file.replace(/(?<=.)\..*$/, '')]
  for (const [index, folder] of segments.entries()) {
    if (index < segments.length - MAX_FOLDERS) continue
    names.push(folder)
    const scope = segments[index - 1]
    if (scope?.startsWith('@') === true) names.push(`${scope}/${folder}`)
  }
  return new Set(names.map(normalName).filter((name) => name !== ''))
}

/** Folders of copies of other works. */
const COPIES = /^_?(?:node_modules|vendor(?:ed)?|third[_-]?party|compiled|bundled|external|deps)$/i

/** Whether a path within the corpus's folder is in a folder of copies, such as `openai/node_modules/zod`. */
export function isCopied(place: string): boolean {
  return place.split(/[/\\]/).some((folder) => COPIES.test(folder))
}
