//! Word lists of the texts that the queries search for.

pub const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Nations with the numbers of their regions.
pub const NATIONS: [(&str, i64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

pub const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];
pub const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
pub const INSTRUCTIONS: [&str; 4] = ["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"];
pub const MODES: [&str; 7] = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];

pub const TYPE_1: [&str; 6] = ["ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD"];
pub const TYPE_2: [&str; 5] = ["ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED"];
pub const TYPE_3: [&str; 5] = ["BRASS", "COPPER", "NICKEL", "STEEL", "TIN"];

pub const CONTAINER_1: [&str; 5] = ["JUMBO", "LG", "MED", "SM", "WRAP"];
pub const CONTAINER_2: [&str; 8] = ["BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG"];

/// Words of the names of parts.
pub const COLOURS: [&str; 40] = [
    "almond",
    "aquamarine",
    "azure",
    "beige",
    "black",
    "blue",
    "brown",
    "chartreuse",
    "chocolate",
    "coral",
    "cream",
    "cyan",
    "dark",
    "dim",
    "drab",
    "firebrick",
    "forest",
    "frosted",
    "ghost",
    "gold",
    "green",
    "grey",
    "honeydew",
    "indian",
    "ivory",
    "khaki",
    "lace",
    "lavender",
    "lemon",
    "lime",
    "linen",
    "magenta",
    "maroon",
    "metallic",
    "midnight",
    "mint",
    "navy",
    "olive",
    "orange",
    "orchid",
];

/// Words of comments. Some queries search for two of them, one after the other.
pub const TEXT: [&str; 32] = [
    "about",
    "above",
    "accounts",
    "according",
    "across",
    "after",
    "along",
    "among",
    "asymptotes",
    "blithely",
    "bold",
    "carefully",
    "deposits",
    "even",
    "express",
    "final",
    "foxes",
    "furiously",
    "ideas",
    "instructions",
    "ironic",
    "packages",
    "pending",
    "pinto",
    "quickly",
    "regular",
    "requests",
    "sleep",
    "slyly",
    "special",
    "theodolites",
    "unusual",
];
