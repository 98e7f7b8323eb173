// The words of a text, in every script, and the stretches that the server's alignments count.
import { tag } from "./languages.js";

const BLANK = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // as for the server
const WORD = new RegExp(`[^${BLANK}]+`, "g"), LEAD = new RegExp(`^[${BLANK}]*`);
const WITHOUT_BLANKS = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}]/u;
const CHARACTER = /[^\p{M}]\p{M}*/gu;

/** The blanks at the beginning of a line. */
export const leadOf = (line) => line.match(LEAD)[0];

/**
 * The stretches [begin, end) of a line that an alignment counts. The server counts code points, from the first one that
 * is not blank; without such `words`, they are what is between blanks.
 */
export function spansIn(line, words) {
  if (!words) return [...line.matchAll(WORD)].map(({ 0: word, index }) => [index, index + word.length]);
  const offsets = [];
  let at = leadOf(line).length;
  for (const character of line.slice(at)) {
    offsets.push(at);
    at += character.length;
  }
  offsets.push(at);
  return words.map(([begin, end]) => [offsets[begin], offsets[end]]);
}

/** The numbers of the spans that share characters with the stretch from `begin` to `end`. */
export function touching(spans, begin, end) {
  return new Set(spans.flatMap(([first, last], number) => (first < end && last > begin ? [number] : [])));
}

/** The words and signs of a text without blanks, as { segment, index, isWordLike }. */
function segmentsOf(text, language) {
  if (Intl.Segmenter) return new Intl.Segmenter(tag(language) || undefined, { granularity: "word" }).segment(text);
  // Without a dictionary, each character is a word.
  return [...text.matchAll(CHARACTER)].map(({ 0: segment, index }) => ({ segment, index, isWordLike: /[\p{L}\p{N}]/u.test(segment) }));
}

/**
 * The words of a text in a language, as { text, begin, end }: what is between blanks, or a part of it in scripts without
 * blanks between words.
 */
export function wordsIn(text, language) {
  const pieces = [...text.matchAll(WORD)].map(({ 0: word, index }) => ({ text: word, begin: index, end: index + word.length }));
  if (!WITHOUT_BLANKS.test(text)) return pieces;
  return pieces.flatMap((piece) => {
    const words = [];
    for (const { segment, index, isWordLike } of segmentsOf(piece.text, language)) {
      const begin = piece.begin + index, end = begin + segment.length, last = words.at(-1);
      // Punctuation belongs to the word before it, or to the first word.
      if (last && (!isWordLike || !last.isWordLike)) {
        Object.assign(last, { text: last.text + segment, end, isWordLike: last.isWordLike || isWordLike });
      } else words.push({ text: segment, begin, end, isWordLike });
    }
    return words;
  });
}
