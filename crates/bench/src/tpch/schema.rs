//! The eight tables, with indexes where the specification has foreign keys, and two indexes on dates.

/// A table to create.
#[derive(Debug)]
pub struct TableDefinition {
    pub name: &'static str,
    pub columns: &'static str,
    /// Created after the rows are loaded.
    pub indexes: &'static [&'static str],
}

/// Ordered by references: a table follows the tables that it refers to.
pub const TABLES: [TableDefinition; 8] = [
    TableDefinition {
        name: "region",
        columns: "r_regionkey INT NOT NULL PRIMARY KEY, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152)",
        indexes: &[],
    },
    TableDefinition {
        name: "nation",
        columns: "n_nationkey INT NOT NULL PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INT NOT NULL, \
                  n_comment VARCHAR(152)",
        indexes: &["n_region(n_regionkey)"],
    },
    TableDefinition {
        name: "supplier",
        columns: "s_suppkey INT NOT NULL PRIMARY KEY, s_name CHAR(25) NOT NULL, \
                  s_address VARCHAR(40) NOT NULL, s_nationkey INT NOT NULL, s_phone CHAR(15) NOT NULL, \
                  s_acctbal DECIMAL(15,2) NOT NULL, s_comment VARCHAR(101) NOT NULL",
        indexes: &["s_nation(s_nationkey)"],
    },
    TableDefinition {
        name: "part",
        columns: "p_partkey INT NOT NULL PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, \
                  p_brand CHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, \
                  p_container CHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, \
                  p_comment VARCHAR(23) NOT NULL",
        indexes: &[],
    },
    TableDefinition {
        name: "partsupp",
        columns: "ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL, \
                  ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL, \
                  PRIMARY KEY (ps_partkey, ps_suppkey)",
        indexes: &["ps_supplier(ps_suppkey)"],
    },
    TableDefinition {
        name: "customer",
        columns: "c_custkey INT NOT NULL PRIMARY KEY, c_name VARCHAR(25) NOT NULL, \
                  c_address VARCHAR(40) NOT NULL, c_nationkey INT NOT NULL, c_phone CHAR(15) NOT NULL, \
                  c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment CHAR(10) NOT NULL, \
                  c_comment VARCHAR(117) NOT NULL",
        indexes: &["c_nation(c_nationkey)"],
    },
    TableDefinition {
        name: "orders",
        columns: "o_orderkey INT NOT NULL PRIMARY KEY, o_custkey INT NOT NULL, \
                  o_orderstatus CHAR(1) NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, \
                  o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, o_clerk CHAR(15) NOT NULL, \
                  o_shippriority INT NOT NULL, o_comment VARCHAR(79) NOT NULL",
        indexes: &["o_customer(o_custkey)", "o_date(o_orderdate)"],
    },
    TableDefinition {
        name: "lineitem",
        columns: "l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, \
                  l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, \
                  l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, \
                  l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, \
                  l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, \
                  l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, \
                  l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
        indexes: &["l_part(l_partkey, l_suppkey)", "l_supplier(l_suppkey)", "l_shipped(l_shipdate)"],
    },
];
