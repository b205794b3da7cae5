// Numbers, sizes, times as texts of the same width wherever they stand.

const EMPTY = "–";
const isNothing = value => value === null || value === undefined || value === "" || Number.isNaN(Number(value));

/// A number with a short suffix.
export function number(value) {
  if (isNothing(value)) return EMPTY;
  value = Number(value);
  const size = Math.abs(value);
  for (const [least, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= least) return trim(value / (unit === "k" ? 1e3 : least)) + unit;
  }
  return trim(value);
}

function trim(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 100) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : size >= 0.1 ? value.toFixed(2) : value.toPrecision(2);
}

export function bytes(value) {
  if (isNothing(value)) return EMPTY;
  value = Number(value);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let n = 0;
  while (Math.abs(value) >= 1000 && n < units.length - 1) { value /= 1024; n++; }
  return trim(value) + " " + units[n];
}

/// Microseconds.
export function us(value) {
  if (isNothing(value)) return EMPTY;
  value = Number(value);
  if (value === 0) return "0";
  if (value < 1000) return trim(value) + " µs";
  if (value < 1e6) return trim(value / 1e3) + " ms";
  return seconds(value / 1e6);
}

export const ms = value => isNothing(value) ? EMPTY : us(Number(value) * 1000);

export function seconds(value) {
  if (isNothing(value)) return EMPTY;
  value = Number(value);
  if (value < 60) return trim(value) + " s";
  const days = Math.floor(value / 86400), hours = Math.floor(value / 3600) % 24, minutes = Math.floor(value / 60) % 60;
  if (days) return days + " d " + hours + " h";
  if (hours) return hours + " h " + minutes + " min";
  return minutes + " min" + (value % 60 >= 1 ? " " + Math.floor(value % 60) + " s" : "");
}

export const percent = value => isNothing(value) ? EMPTY : trim(100 * value) + " %";

/// Time of day of milliseconds since 1970, in the browser's zone.
export function clock(at, withSeconds) {
  const date = new Date(at), two = n => String(n).padStart(2, "0");
  return two(date.getHours()) + ":" + two(date.getMinutes()) + (withSeconds ? ":" + two(date.getSeconds()) : "");
}

/// Text of a cell.
export const text = value => value === null || value === undefined ? EMPTY : String(value);
